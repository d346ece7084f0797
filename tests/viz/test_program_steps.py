"""Steps of compiled functions: a frame for each pass, and the marks on what it has changed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import needle as ndl
import viz
from needle import nn

from ..training import compiled_step

CUT = """\
Cut. Cut loops, so that all nests go through a buffer by the same strides; leave out loops of one iteration.
  def layer(x):
      for i in range(10):
          for j in range(8):
              matmul1[8 * i + j] = float32(0)
      for i in range(10):
          for j in range(2):
              for k in range(8):
                  matmul1[8 * i + k] += x[2 * i + j] * W[8 * j + k]
      for i in range(10):
          for j in range(8):
              add1[8 * i + j] = matmul1[8 * i + j] + b[j]
~     for i in range(10):
+         for j in range(8):
~             relu1[8 * i + j] = relu(add1[8 * i + j])
      for i in range(10):
          for j in range(8):
              result[8 * i + j] = relu1[8 * i + j]"""
FUSE = """\
Fuse, 2 of 2. Now 3 statements share one loop over j, of length 8.
  def layer(x):
      for i in range(10):
          for j in range(8):
              matmul1[8 * i + j] = float32(0)
          for j in range(2):
              for k in range(8):
                  matmul1[8 * i + k] += x[2 * i + j] * W[8 * j + k]
          for j in range(8):
              add1[8 * i + j] = matmul1[8 * i + j] + b[j]
−         for j in range(8):
              relu1[8 * i + j] = relu(add1[8 * i + j])
−         for j in range(8):
              result[8 * i + j] = relu1[8 * i + j]"""


def layer_of(rows: int = 10, inputs: int = 2, units: int = 8, device=None):
    W = ndl.Tensor(np.ones((inputs, units)), device=device)
    b = ndl.Tensor(np.zeros((1, units)), device=device)

    @ndl.jit
    def layer(x):
        return ndl.relu(x @ W + b)

    layer.program_for(ndl.Tensor(np.ones((rows, inputs)), device=device))
    return layer


def marked(frame, sign: str) -> list[str]:
    return [line.text.strip() for line in frame.lines if line.sign == sign]


def after(frame) -> list[str]:
    """The program after a pass, without what is gone."""
    return [line.text for line in frame.lines if line.sign != "−"]


def before(frame) -> list[str]:
    """The program before a pass, as its frame says."""
    return [line.before or line.text for line in frame.lines if line.sign != "+"]


def test_the_frames_of_the_example_are_in_order() -> None:
    steps = viz.steps(layer_of())
    names = [frame.name for frame in steps]
    assert names == ["trace", "lower", "cut", "fuse", "fuse", "contract", "source"]
    assert steps.title == "layer, pass by pass: 7 frames"
    assert after(steps[0]) == [
        "def layer(x):",
        "    matmul1 = x @ W  # (10, 8)",
        "    add1 = matmul1 + b  # (10, 8)",
        "    relu1 = relu of add1  # (10, 8)",
        "    return relu1",
    ]
    assert after(steps[-1]) == layer_of().source.rstrip().splitlines()


def test_each_frame_begins_with_what_the_one_before_has_left() -> None:
    for compiled in (layer_of(), layer_of(device=ndl.cpu_numpy()), compiled_step()):
        steps = viz.steps(compiled)
        for old, new in pairwise(steps):
            assert before(new) == after(old)


def test_an_operator_gives_way_to_its_loops() -> None:
    frame = viz.steps(layer_of())[1]
    signs = "".join(line.sign for line in frame.lines)
    assert signs == " −+++++++−+++−++−+++"
    assert marked(frame, "−")[1] == "add1 = matmul1 + b  # (10, 8)"


def test_cut_and_fuse_mark_what_they_change() -> None:
    steps = viz.steps(layer_of())
    assert str(steps[2]) == CUT
    assert str(steps[4]) == FUSE
    assert marked(steps[3], "−") == ["for i in range(10):"] * 4
    assert not marked(steps[3], "+") + marked(steps[3], "~")


def test_contraction_changes_places_in_lines() -> None:
    frame = viz.steps(layer_of())[-2]
    assert frame.name == "contract"
    assert marked(frame, "~")[2:] == [
        "add1 = matmul1[j] + b[j]",
        "relu1 = relu(add1)",
        "result[8 * i + j] = relu1",
    ]
    assert not marked(frame, "+") + marked(frame, "−")
    html = frame.html()
    assert "add1<del>[8 * i + j]</del><ins></ins> = matmul1[" in html
    assert '<div class="line changed" style="--in:12"><b>~</b>' in html


def test_each_simplification_that_changes_something_is_a_frame() -> None:
    @ndl.jit
    def f(x):
        ndl.exp(x).sum()
        return (x * ndl.ones(3, 3)) + ndl.tanh(x) * ndl.tanh(x)

    f(ndl.Tensor(np.ones((3, 3))))
    steps = {frame.name: frame for frame in viz.steps(f)}
    assert list(steps)[:4] == ["trace", "lower", "with numbers", "without repeats"]
    assert marked(steps["with numbers"], "~") == ["mul1[i] = x[i]"]
    assert "tanh2[i] = tanh(x[i])" in marked(steps["without repeats"], "−")
    assert steps["with numbers"].words.startswith("Constant folding: ")


def test_a_step_of_training() -> None:
    compiled = compiled_step()
    steps = viz.steps(compiled)
    names = [frame.name for frame in steps]
    assert list(dict.fromkeys(names)) == [
        "trace", "lower", "with numbers", "needed", "cut", "order", "fuse", "contract", "source"
    ]  # fmt: skip
    assert {"return div1", "weight_0 = add4", "bias_2 = add7"} <= {x.strip() for x in after(steps[0])}
    assert "mul2 = matmul4 × lr  # (2, 8)" in [x.strip() for x in after(steps[0])]
    fuse = [frame for frame in steps if frame.name == "fuse"]
    assert all(set(frame.words.split()) >= {"statements", "share"} for frame in fuse)
    assert all(marked(frame, "−") and not marked(frame, "+") for frame in fuse)
    assert after(steps[-1]) == compiled.source.rstrip().splitlines()
    assert len(steps.html()) < 300_000


def test_looking_changes_nothing() -> None:
    compiled, x = compiled_step(), ndl.Tensor(np.ones((10, 2)))
    layer = layer_of()
    source, first = layer.source, layer(x).numpy()
    viz.steps(layer)
    assert layer.source == source
    np.testing.assert_array_equal(layer(x).numpy(), first)
    assert [x.text for x in viz.draw_schedule(compiled).data.listings[0].lines] == [
        x.text for x in viz.draw_schedule(compiled_step()).data.listings[0].lines
    ]


def test_a_large_product_stays_one_statement_for_blas() -> None:
    steps = viz.steps(layer_of(100, 200, 100))
    assert any(x.strip().startswith("matmul(sgemm, (x, 0, 200, ") for x in after(steps[1]))


def test_an_operator_that_is_not_lowered_is_a_call() -> None:
    class Sorted(ndl.autograd.TensorOp):
        def infer(self, a):
            return a

        def compute(self, a):
            return a.device.array(np.sort(a.numpy()), a.dtype)

    f = ndl.jit(lambda x: ndl.exp(Sorted()(ndl.exp(x))))
    f(ndl.Tensor([3.0, 1.0, 2.0]))
    lines = [x.strip() for x in after(viz.steps(f)[1])]
    assert "value = Sorted(exp1)  # by its own kernel" in lines


def test_on_cpu_numpy_the_last_frame_is_numpy() -> None:
    layer = layer_of(device=ndl.cpu_numpy())
    steps = viz.steps(layer)
    assert [frame.name for frame in steps] == ["trace", "lower", "source"]
    assert marked(steps[-1], "+") == [x.strip() for x in layer.source.rstrip().splitlines()]
    assert len(marked(steps[-1], "−")) == 16
    x, y = (
        ndl.Tensor(np.ones((10, 2)), device=ndl.cpu_numpy()),
        ndl.Tensor(np.zeros(10), device=ndl.cpu_numpy()),
    )
    model = nn.Sequential(nn.Linear(2, 8, device=x.device), nn.ReLU(), nn.Linear(8, 2, device=x.device))
    optimizer = ndl.optim.SGD(model.parameters(), lr=0.1)

    @ndl.jit
    def step(x, y):
        loss = nn.SoftmaxLoss()(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    step(x, y)
    names = [frame.name for frame in viz.steps(step)]
    assert names == ["trace", "lower", "with numbers", "needed", "source"]


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="steps: layer is not compiled yet"):
        viz.steps(ndl.jit(layer_of().function))
    with pytest.raises(ValueError, match="layer has 5 statements, more than limit=4; compile a smaller"):
        viz.steps(layer_of(), limit=4)
    with pytest.raises(ValueError, match=r"cannot write 'steps\.gif'; end the name in \.html$"):
        viz.steps(layer_of()).save("gif")


def test_the_style_says_whether_it_is_dark() -> None:
    follows, dark = viz.steps(layer_of()), viz.steps(layer_of(), style="dark")
    assert "--new:light-dark(#DFF5EA,#0C4532)" in follows.html()
    assert 'class="needle-pages needle-follows"' in follows.html()
    assert "--new:#0C4532" in dark.html()
    assert "color-scheme:dark" in dark.html()
    assert all(
        sign in viz.steps(layer_of(), style="print").html() for sign in ("<b>+</b>", "<b>−</b>", "<b>~</b>")
    )


def test_long_frames_show_what_is_changed_and_the_loops_around_it() -> None:
    frame = next(frame for frame in viz.steps(compiled_step()) if frame.title == "Fuse, 6 of 13")
    html = frame.html()
    assert "lines as before" in html
    assert html.count("<b>−</b><span>") == len(marked(frame, "−"))
    assert html.count("<section") == 1
    assert html.count('style="--in:4"><b> </b><span>for i in range(10):') == 1


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_player_shows_one_frame_at_a_time(browser, tmp_path, width, scheme) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(viz.steps(layer_of()).save(tmp_path / "steps.html").as_uri())
    player = page.locator(".needle-steps")
    player.wait_for()
    assert page.locator(".page:visible").count() == 1
    assert page.locator(".title").inner_text() == "Trace"
    assert page.locator(".order li").all_inner_texts() == [
        "trace",
        "lower",
        "cut",
        "fuse",
        "contract",
        "source",
    ]
    top = page.locator(".now").bounding_box()["y"]
    page.keyboard.press("ArrowRight")
    assert page.locator(".page:visible .gone").count() == 4
    page.locator("input").fill("4")
    assert page.locator(".title").inner_text() == "Fuse, 2 of 2"
    assert page.locator(".order .current").inner_text() == "fuse"
    assert page.locator(".page:visible .gone").count() == 2
    assert page.locator(".now").bounding_box()["y"] == top
    gone = page.locator(".page:visible .gone").first
    light, dark = "rgb(254, 228, 226)", "rgb(90, 22, 19)"
    assert gone.evaluate("x => getComputedStyle(x).backgroundColor") == {"light": light, "dark": dark}[scheme]
    assert page.get_by_role("button", name="Fit").count() == 0
    page.keyboard.press("+")
    page.keyboard.press("End")
    assert page.locator(".count").inner_text() == "7 / 7"
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert page.locator(".picture").evaluate("x => x.scrollWidth <= x.clientWidth")
    assert (
        player.evaluate(
            "x => Math.min(...[...x.querySelectorAll('.page span')]"
            ".map((y) => parseFloat(getComputedStyle(y).fontSize)))"
        )
        >= 12
    )
    page.close()
    assert not troubles


@pytest.mark.browser
def test_a_long_frame_is_scrolled_to_its_first_change(browser, tmp_path) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 700})
    page.goto(viz.steps(compiled_step()).save(tmp_path / "steps.html").as_uri())
    page.locator(".needle-steps").wait_for()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
        view = page.locator(".picture").bounding_box()
        first = page.locator(".page:visible").locator(".new, .gone, .changed").first.bounding_box()
        assert view["y"] <= first["y"] <= view["y"] + view["height"]
    page.close()


@pytest.mark.browser
def test_without_scripts_all_frames_are_seen(browser, tmp_path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(viz.steps(layer_of()).save(tmp_path / "steps.html").as_uri())
    assert page.locator(".page:visible").count() == 7
    assert page.locator(".heading").first.inner_text().startswith("Trace")
    page.close()


@pytest.mark.browser
def test_the_widget_shares_its_frame(browser) -> None:
    pytest.importorskip("anywidget")
    player = viz.step(layer_of())
    player.frame = 6
    assert "needle-pages" in player.data["svg"]
    assert "needle-pages" in player._repr_mimebundle_()[0]["text/html"]
