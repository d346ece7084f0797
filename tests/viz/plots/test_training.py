"""Decision boundaries, loss curves and loss surfaces."""

from __future__ import annotations

import gc
import sys
import weakref
from types import SimpleNamespace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

import needle as ndl
from needle import nn
from viz import plots
from viz.plots import look, surface


@pytest.fixture
def points() -> np.ndarray:
    return np.random.default_rng(0).uniform(-6, 6, (60, 2))


def classifier(outputs: int, *more: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 8, rng=0), nn.Tanh(), *more, nn.Linear(8, outputs, rng=1))


def state(model: nn.Module) -> list:
    return [(name, tensor.numpy().tolist()) for name, tensor in model.state_dict().items()]


def colour_of(ax, label: str) -> str:
    artist = next(c for c in ax.collections if c.get_label() == label)
    return to_hex(artist.get_facecolor()[0])


# The style


def test_a_figure_is_the_callers_alone_where_nothing_is_shown() -> None:
    ax = plots.loss_curve([1.0, 0.5])
    figure = weakref.ref(ax.figure)
    del ax
    gc.collect()
    assert figure() is None


def test_a_figure_is_known_to_pyplot_where_figures_are_shown(monkeypatch) -> None:
    monkeypatch.setattr(look.mpl, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    ax = plots.loss_curve([1.0, 0.5])
    assert plt.figure(plt.get_fignums()[0]) is ax.figure
    plt.close(ax.figure)
    with pytest.raises(ValueError, match="nan or inf everywhere"):
        plots.loss_surface(lambda a, b: a * np.nan)
    assert plt.get_fignums() == []


def test_what_a_reader_has_set_for_own_pictures_is_not_read() -> None:
    plain = plots.loss_curve([1.0, 0.5])
    with mpl.rc_context(
        {"axes.facecolor": "black", "font.size": 30, "xtick.labelsize": 25, "axes.grid": True}
    ):
        other = plots.loss_curve([1.0, 0.5])
        other.figure.canvas.draw()
    assert other.get_facecolor() == plain.get_facecolor()
    sizes = [ax.get_xticklabels()[0].get_size() for ax in (plain, other)]
    assert sizes[0] == sizes[1]


def test_what_a_backend_sets_when_it_is_first_used_stays() -> None:
    try:
        with look.drawing(None):
            mpl.interactive(True)
        assert mpl.is_interactive()  # else notebooks would show no figure
    finally:
        mpl.interactive(False)


@pytest.mark.parametrize(
    "draw", [lambda ax: plots.loss_curve([1], ax=ax), lambda ax: plots.broadcast(3, 1, ax=ax)]
)
def test_given_axes_are_drawn_on_and_returned(draw) -> None:
    figure = mpl.figure.Figure()
    ax = figure.add_subplot(121)
    assert draw(ax) is ax


def test_words_of_a_diagram_become_smaller_with_it(legible) -> None:
    figure = mpl.figure.Figure(figsize=(3, 2))
    mpl.backends.backend_agg.FigureCanvasAgg(figure)
    small = plots.broadcast((5, 1), (5, 3), ax=figure.add_axes((0, 0, 1, 1)))
    assert small.texts[0].get_size() < plots.broadcast((5, 1), (5, 3)).texts[0].get_size()
    legible(small)


def test_the_same_call_gives_the_same_picture(points, tmp_path) -> None:
    for name in ("one.png", "two.png"):
        plots.decision_boundary(classifier(1), points, points[:, 0] > 0).figure.savefig(tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


# Decision boundaries


@pytest.mark.parametrize("low", [(-6, 6), (0, 1), (100, 100)])
def test_the_plane_is_drawn_around_the_points(low, points, legible) -> None:
    points = points / 12 * (low[1] - low[0]) + (low[0] + low[1]) / 2
    ax = plots.decision_boundary(lambda x: x[:, 0] - x[:, 1], points)
    for ends, values in zip((ax.get_xlim(), ax.get_ylim()), points.T, strict=True):
        assert ends[0] < values.min() <= values.max() < ends[1]
    legible(ax)


@pytest.mark.parametrize(("labels", "names"), [((0, 1), ("label 0", "1")), ((-1, 1), ("label −1", "1"))])
def test_one_output_divides_the_plane_at_the_threshold(labels, names, points, legible) -> None:
    # Half of the plane, where x1 is above 2, is the larger label's.
    y = np.where(points[:, 0] > 2, labels[1], labels[0])
    ax = plots.decision_boundary(lambda x: x[:, :1], points, y, threshold=2.0)
    (line,) = [c for c in ax.collections if type(c).__name__ == "QuadContourSet"]
    corners = np.concatenate([path.vertices for path in line.get_paths()])
    np.testing.assert_allclose(corners[:, 0], 2.0, atol=1e-6)
    assert colour_of(ax, names[0]) == look.ORANGE.lower()
    assert colour_of(ax, names[1]) == look.BLUE.lower()
    mesh = ax.collections[0]
    assert (mesh.norm.vmin + mesh.norm.vmax) / 2 == pytest.approx(2.0)
    legible(ax)


def test_logits_divide_the_plane_into_regions(points, texts, legible) -> None:
    weight = ndl.Tensor([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])
    y = np.argmax(points @ weight.numpy(), axis=1)
    ax = plots.decision_boundary(lambda x: x @ weight, points, y, resolution=40)
    regions = ax.collections[0].get_array().reshape(40, 40)
    xs, ys = np.linspace(*ax.get_xlim(), 40), np.linspace(*ax.get_ylim(), 40)
    expected = [[np.argmax(np.array([x, v]) @ weight.numpy()) for x in xs] for v in ys]
    np.testing.assert_array_equal(regions, expected)
    assert {"label 0", "1", "2", "class"} <= set(texts(ax))
    assert len({c.get_paths()[0].vertices.shape for c in ax.collections[-3:]}) > 1  # markers differ
    legible(ax)


def test_a_model_is_used_without_a_graph_and_left_as_it_was(points) -> None:
    model = classifier(1, nn.BatchNorm1d(8), nn.Dropout(0.5, rng=0))
    model[0].eval()
    model[1].forward  # noqa: B018 - an attribute of the class, which stays one
    modes = [module.training for _, module in model.named_modules()]
    attributes = [sorted(vars(module)) for _, module in model.named_modules()]
    before, counter = state(model), ndl.autograd.TENSOR_COUNTER
    ax = plots.decision_boundary(model, points)
    assert [module.training for _, module in model.named_modules()] == modes
    assert [sorted(vars(module)) for _, module in model.named_modules()] == attributes
    assert state(model) == before
    assert counter == ndl.autograd.TENSOR_COUNTER
    values = [plots.decision_boundary(model, points).collections[0].get_array() for _ in range(2)]
    np.testing.assert_array_equal(*values)  # in use dropout drops nothing
    np.testing.assert_array_equal(values[0], ax.collections[0].get_array())


def test_a_model_is_left_as_it_was_also_when_it_fails(points) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 1))
    with pytest.raises(ValueError, match="Linear: needs shape"):
        plots.decision_boundary(model, points)
    assert all(module.training for _, module in model.named_modules())


def test_outputs_that_are_no_numbers_are_grey_and_told(points, texts) -> None:
    ax = plots.decision_boundary(lambda x: ndl.log(x[:, 0]), points, resolution=20)
    assert any("nan or inf (200 of 400)" in text for text in texts(ax))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: plots.decision_boundary(lambda x: x[:, 0], p[:, :1]), "shape .n, 2."),
        (lambda p: plots.decision_boundary(lambda x: x[:, 0], p, [0, 1]), "60 points, but 2 labels"),
        (
            lambda p: plots.decision_boundary(lambda x: x[:, 0], p, np.arange(60) % 3),
            "a logit for each class",
        ),
        (lambda p: plots.decision_boundary(lambda x: x, p, np.arange(60) % 3), "labels must be 0 to 1"),
        (lambda p: plots.decision_boundary(lambda x: x.sum(), p), "gave shape ()"),
        (lambda p: plots.decision_boundary(lambda x: x, p, resolution=1), "at least 2, got 1"),
    ],
)
def test_points_and_labels_that_do_not_fit_are_refused(call, message: str, points) -> None:
    with pytest.raises(ValueError, match=message):
        call(points)


# Loss curves


def line(ax, label: str) -> np.ndarray:
    found = next(line for line in ax.lines if line.get_label() == label)
    return np.stack([np.asarray(values, float) for values in found.get_data()])


def test_train_and_test_are_drawn_where_they_were_measured(legible) -> None:
    ax = plots.loss_curve([4, 3, 2, 1], [3.5, 1.5])
    np.testing.assert_array_equal(line(ax, "train"), [[1, 2, 3, 4], [4, 3, 2, 1]])
    np.testing.assert_array_equal(line(ax, "test"), [[2, 4], [3.5, 1.5]])
    legible(ax)


def test_curves_by_name_share_a_colour_with_their_test(legible) -> None:
    ax = plots.loss_curve({"SGD": [2, 1], "Adam": [2, 0.5]}, {"SGD": [2, 1.2], "Adam": [2, 0.7]}, log=True)
    colours = {line.get_label(): line.get_color() for line in ax.lines}
    assert colours["SGD"] == colours["SGD, test"] != colours["Adam"] == colours["Adam, test"]
    assert ax.get_yscale() == "log"
    legible(ax)


@pytest.mark.parametrize(("log", "gone"), [(False, [2, 4]), (True, [2, 4, 5])])
def test_losses_that_cannot_be_drawn_are_marked(log: bool, gone: list, legible) -> None:
    ax = plots.loss_curve([2.0, float("nan"), 1.0, float("inf"), 0.0, 0.5], log=log)
    mark = next(line for line in ax.lines if "first at 2" in line.get_label())
    np.testing.assert_array_equal(mark.get_xdata(), gone)
    assert np.isnan(line(ax, "train")[1]).sum() == len(gone)
    legible(ax)


def test_losses_may_be_tensors() -> None:
    ax = plots.loss_curve([ndl.Tensor(2.0), ndl.Tensor([1.0])])
    np.testing.assert_array_equal(line(ax, "train")[1], [2, 1])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (None, ValueError, "there is nothing to draw yet"),
        ([], ValueError, "at least one"),
        ({}, ValueError, "empty"),
        (["a"], TypeError, "needs numbers"),
    ],
)
def test_losses_that_are_none_are_refused(given, error, message: str) -> None:
    with pytest.raises(error, match=message):
        plots.loss_curve(given)


@pytest.fixture
def notebook(monkeypatch) -> list:
    """A notebook's front end that notes what is displayed."""
    shown: list = []
    handle = SimpleNamespace(update=lambda picture: shown.append(("update", picture.data)))

    def display(picture, display_id):
        shown.append(("display", picture.data))
        return handle

    package = pytest.importorskip("IPython")
    module = pytest.importorskip("IPython.display")
    monkeypatch.setattr(package, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(module, "display", display)
    return shown


def test_a_live_curve_is_displayed_once_and_then_changed_in_place(notebook) -> None:
    with plots.live_loss_curve(every=3600) as curve:
        for loss in (3.0, 2.0, 1.0):
            curve.update(loss, loss + 1)
        assert [what for what, _ in notebook] == ["display"]  # not a picture for every step
    assert [what for what, _ in notebook] == ["display", "update"]
    assert "data:image/svg+xml;base64," in notebook[1][1]
    assert notebook[0][1] != notebook[1][1]
    np.testing.assert_array_equal(line(curve.draw(), "test")[1], [4, 3, 2])


def test_a_live_curve_is_silent_where_there_is_no_notebook(capsys) -> None:
    assert "ipykernel" not in sys.modules
    with plots.live_loss_curve() as curve:
        curve.update(test=1.0)
        curve.update(test=ndl.Tensor([0.5]))
    assert capsys.readouterr() == ("", "")
    np.testing.assert_array_equal(line(curve.draw(), "test")[1], [1, 0.5])
    with pytest.raises(ValueError, match="there is nothing to draw yet"):
        plots.live_loss_curve().draw()


# Loss surfaces


def test_the_surface_of_a_function_is_computed_in_one_call_where_it_can_be(legible) -> None:
    calls = []

    def bowl(a, b):
        calls.append(a.shape)
        return (a - 1) ** 2 + b**2

    ax = plots.loss_surface(bowl, {"SGD": [(3, 3), (2, 1), (1, 0)]}, extent=(-1, 4, -2, 4), resolution=51)
    assert calls == [(51 * 51,)]
    np.testing.assert_allclose(line(ax, "lowest on the grid")[:, 0], [1, 0], atol=0.07)
    walked = [np.stack(line.get_data()) for line in ax.lines if len(line.get_xdata()) == 3]
    np.testing.assert_array_equal(walked[0], [[3, 2, 1], [3, 1, 0]])
    legible(ax)


def test_the_surface_of_a_function_of_two_numbers_is_the_same() -> None:
    grid = surface._surface(lambda a, b: (a * b).sum(), np.arange(3.0), np.arange(4.0))
    np.testing.assert_array_equal(grid, np.outer(np.arange(4), np.arange(3)))


def test_a_path_that_leaves_the_numbers_says_so(texts) -> None:
    ax = plots.loss_surface(lambda a, b: a * a + b * b, [(1, 1), (2, 2), (np.inf, 0)])
    assert "path, nan or inf from step 2" in texts(ax)


def test_a_single_place_is_drawn_with_what_is_around_it(legible) -> None:
    surface = plots.loss_surface(lambda x, y: x**2 + y**2, {"start": [[1.0, 1.0]]})
    plane = plots.decision_boundary(lambda x: x[:, 0], [[1.0, 1.0]], [0])
    for ax in (surface, plane):
        for low, high in (ax.get_xlim(), ax.get_ylim()):
            assert low <= 0 < 1 < 2 <= high
        legible(ax)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plots.loss_surface(lambda a, b: a, {"x": [1, 2]}), ValueError, "pairs of numbers"),
        (lambda: plots.loss_surface(lambda a, b: a, extent=(1, 0, 0, 1)), ValueError, "left < right"),
        (lambda: plots.loss_surface(lambda a, b: a, resolution=1), ValueError, "at least 2, got 1"),
        (lambda: plots.loss_surface(3), TypeError, r"loss\(a, b\) of two numbers, got int"),
    ],
)
def test_surfaces_that_cannot_be_are_refused(call, error, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    ("losses", "written"),
    [
        ([2.5, 0.5], ["0.5", "0.7", "1", "2"]),
        ([1.0, 1e-3], ["0.001", "0.01", "0.1", "1"]),
        ([1.0, 1e-8], ["10⁻⁸", "10⁻⁷", "10⁻⁶"]),
    ],
)
def test_a_logarithmic_axis_has_plain_numbers_or_powers(losses, written) -> None:
    axis = plots.loss_curve(losses, log=True).yaxis
    low, high = axis.get_view_interval()
    ticks = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
    shown = [label.get_text() for place, label in ticks if low <= place <= high]
    assert shown[: len(written)] == written
    assert not any(label.get_text() for label in axis.get_minorticklabels())
