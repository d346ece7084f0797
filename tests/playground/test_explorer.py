"""The Explorer without a browser and in one: examples, views, the address, and texts that mean harm."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

import viz
from playground.language.expression import run as run_text
from playground.pages import explorer
from playground.results import explorer as results
from playground.results.explorer import EXAMPLES, STYLES, VIEWS

from . import apps
from .apps import address_of, run, said
from .apps import refused as messages
from .hostile import HOSTILE
from .stage.page import address_now, until


def start(**address):
    return apps.start("explorer", **address)


@pytest.fixture
def app():
    return start()


def write(app, text):
    app.text_area(key="expression").set_value(text)
    return run(app)


def shown(app):
    """All that is said in HTML: the value and the gradients, the marked text."""
    return " ".join(x.proto.body for x in app.get("html") if 'class="explorer"' in x.proto.body)


def pictures(app):
    """The pictures that are shown, as HTML."""
    return [json.loads(component.proto.json) for component in app.get("bidi_component")]


def picture_of(app):
    """What the one picture that is shown says of itself."""
    (picture,) = pictures(app)
    return re.search(r'alt="([^"]*)"|&quot;title&quot;: &quot;(Steps .*?)&quot;', picture).group(1, 2)[
        "data-needle-steps" in picture
    ]


# Without a browser


def test_at_first_there_is_an_example_with_its_graph(app):
    assert app.text_area(key="expression").value == EXAMPLES["One value, two paths"]
    assert "computational graph of v4" in picture_of(app)
    assert not app.query_params
    assert not messages(app)


# Each view with an example of its own. The examples' values are tested beside the language.
OFTEN = list(zip(VIEWS, EXAMPLES, strict=False))
SELDOM = [(view, name) for view in VIEWS for name in EXAMPLES if (view, name) not in OFTEN]


@pytest.mark.parametrize(
    ("view", "name"), [*OFTEN, *[pytest.param(*both, marks=pytest.mark.slow) for both in SELDOM]]
)
def test_every_example_in_every_view(view, name):
    app = start(view=view)
    app.pills(key="example").select(name)
    run(app)
    assert app.text_area(key="expression").value == EXAMPLES[name]
    assert not messages(app)
    assert address_of(app).get("view", "forward") == view
    if view == "memory":
        assert "keeps alive" in pictures(app)[0]
    elif (name, view) == ("Adjoints add up", "second"):  # the one that is linear
        assert "all second derivatives are 0" in app.info[0].value
    else:
        of = run_text(EXAMPLES[name]).name
        said = {
            "forward": f"^computational graph of {of}:",
            "gradient": f"^gradient graph of {of}:",
            "second": r"^gradient graph of \w+\.grad:",
            "steps": f"^Steps to {of} and back: ",
        }
        assert re.search(said[view], picture_of(app))


def test_the_value_and_the_gradients_are_said(app):
    app.pills(key="example").select("Chain rule")
    run(app)
    for number in ("49", "42", "28", "14"):
        assert f">{number}<" in shown(app)


def test_a_text_reaches_the_address_and_comes_back_from_it(app):
    text = "x = [1, 2]\nsum(x * x)  # + & = ; é"
    write(app, text)
    assert address_of(app) == {"text": text}
    again = start(text=text, view="gradient", style="print", rankdir="TB")
    assert again.text_area(key="expression").value == text
    assert "gradient graph of result" in picture_of(again)
    assert address_of(again) == {
        "text": text,
        "view": "gradient",
        "style": "print",
        "rankdir": "TB",
    }


def test_names_are_no_markdown():
    app = start(view="second", text="a_b_c = [1, 2]\nd_e_f = a_b_c * a_b_c * a_b_c")
    assert [caption.value for caption in app.caption if "a\\_b\\_c has several" in caption.value]
    assert [caption.value for caption in app.caption if "d\\_e\\_f has shape" in caption.value]


def test_a_mistake_is_told_marked_and_drawn(app):
    write(app, "X = [[1, 2]]\nY = tanh(X) @ X\nY + 1")
    (message,) = messages(app)
    assert message.startswith("Line 2: matmul")
    assert "<mark>tanh(X) @ X</mark>" in shown(app)
    assert "graph up to @, which failed" in picture_of(app)
    write(app, "X = [[1, 2]]\nsum(X)")
    assert not messages(app)
    assert "computational graph" in picture_of(app)


def test_text_that_is_too_long_is_not_parsed(app, monkeypatch):
    # the first thing that is done to it
    monkeypatch.setattr("playground.language.reading._without_comment", None)
    write(app, "1 + " * 1000 + "1")
    assert messages(app) == ["Line 1: the text has 4,001 characters; at most 2,000 are read. Shorten it."]


def test_what_is_wrong_is_shown_as_it_was_written(app):
    write(app, "x = 1\nx <b>x</b>")
    assert "b&gt;x&lt;/b&gt;" in re.sub("</?mark>", "", shown(app))
    assert "<b>" not in shown(app)


def test_an_array_has_the_gradient_of_its_sum_and_that_is_said(app):
    write(app, "x = [1, 2]\nx * x")
    (caption,) = [words for words in said(app) if "sum of its elements" in words]
    assert "shape (2,)" in caption


@pytest.mark.parametrize("view", ["gradient", pytest.param("second", marks=pytest.mark.slow)])
def test_a_constant_has_no_gradient_and_that_is_said(view):
    app = start(view=view, text="constant([1, 2]) * 3")
    assert any("constant" in info.value for info in app.info)
    assert not pictures(app)
    assert pictures(start(text="constant([1, 2]) * 3"))


def test_a_gradient_that_depends_on_nothing_is_not_differentiated():
    assert [info.value for info in start(view="second", text="x = 1\nx + x").info] == [
        "No gradient depends on a variable here: all second derivatives are 0."
    ]


def test_a_variable_that_decides_and_no_more_has_no_gradient_and_that_is_said():
    app = start(view="second", text="z = [0, 1]\nx = 2\nwhere(z, x * x, 1)")
    assert '<td class="gradient">none</td>' in shown(app)
    assert app.pills(key="leaf").options == ["x"]


def test_the_leaf_of_the_second_order_can_be_chosen():
    app = start(view="second", text="a = 2\nb = 3\na * a * b")
    assert app.pills(key="leaf").options == ["a", "b"]
    assert "of a.grad" in picture_of(app)
    app.pills(key="leaf").select("b")
    run(app)
    assert "of b.grad" in picture_of(app)
    write(app, "c = 2\nc ** 3")
    assert "of c.grad" in picture_of(app)


@pytest.mark.parametrize(
    "style",
    [style if style in ("auto", "dark") else pytest.param(style, marks=pytest.mark.slow) for style in STYLES],
)
def test_every_style(app, style):
    plain = pictures(app)
    app.selectbox(key="look").select(style)
    run(app)
    assert (pictures(app) == plain) == (style in ("auto", "needle"))
    app.selectbox(key="direction").select("TB")
    run(app)
    assert pictures(app) != plain


def test_nothing_is_computed_or_drawn_twice(app, monkeypatch):
    monkeypatch.setattr(results, "run", None)
    monkeypatch.setattr(results.viz, "draw", None)
    run(app)
    assert "computational graph of v4" in picture_of(run(start()))


def test_a_picture_is_kept_in_every_format():
    drawing = explorer._picture(EXAMPLES["Adjoints add up"], "gradient", "needle", "LR", "").picture
    assert explorer._kinds(drawing) == ["svg", "png", "pdf", "html"]
    assert results.as_file(drawing, "svg").startswith(b"<svg")
    assert results.as_file(drawing, "png").startswith(b"\x89PNG")
    assert results.as_file(drawing, "pdf").startswith(b"%PDF")
    assert b"<html" in results.as_file(drawing, "html")


def test_what_would_be_too_large_is_not_offered(monkeypatch):
    text = "x = 1\nfor i in range(50):\n    x = sin(x) + cos(x)"
    picture = explorer._picture(text, "forward", "needle", "LR", "").picture
    assert "png" in explorer._kinds(picture)
    monkeypatch.setattr(explorer, "LARGEST_PNG", 1000)  # pixels
    assert "png" not in explorer._kinds(picture)
    app = start(text=text, view="steps")
    (warning,) = app.warning
    assert "100" in warning.value
    assert not pictures(app)


def test_a_picture_that_cannot_be_had_is_told_and_not_tried_again(monkeypatch):
    def give_up(*_):
        raise viz.CannotRender("too many edges cross each other")

    monkeypatch.setattr("viz.engines.run", give_up)
    text = "x = 7\nx * x * x"
    (warning,) = start(text=text).warning
    assert "too many edges cross each other" in warning.value
    monkeypatch.undo()
    assert start(text=text).warning
    assert pictures(start(text=text, view="gradient"))


@pytest.mark.parametrize("of_each_kind", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_app_stays_up_after_every_kind_of_hostile_text(app, of_each_kind):
    for reason, texts in HOSTILE.items():
        for text in texts[-of_each_kind:]:
            write(app, text.replace("\r", " ") if len(text) < 10**6 else text[:10_000])
            assert len(messages(app)) == 1, (reason, text[:80])
    write(app, "1 + 2")
    assert not messages(app)
    assert ">3</td>" in shown(app)


# In a browser


def visit(page, address, **query):
    page.goto(f"{address}/explorer?" + "&".join(f"{name}={quote(value)}" for name, value in query.items()))
    page.get_by_role("button", name="Run", exact=True).wait_for()


def type_in(page, text):
    area = page.get_by_role("textbox", name="Expression")
    area.fill(text)
    area.press("Control+Enter")


def drawing(page, words):
    return page.get_by_role("group", name=re.compile(words))


def text_in(url):
    return parse_qs(urlsplit(url).query).get("text", [None])[0]


@pytest.mark.slow
@pytest.mark.browser
def test_an_example_a_view_and_a_link(page, address, browser):
    visit(page, address)
    page.get_by_role("radio", name="Matrix product").click()
    page.get_by_role("cell", name="166", exact=True).wait_for()
    page.get_by_role("radio", name="Gradient graph").click()
    drawing(page, "gradient graph of y").wait_for()
    until(page, lambda: "view=gradient" in address_now(page), "the address follows")
    assert text_in(address_now(page)) == EXAMPLES["Matrix product"]

    page.goto(address_now(page))
    page.get_by_role("cell", name="166", exact=True).wait_for()
    drawing(page, "gradient graph of y").wait_for()
    assert page.get_by_role("textbox", name="Expression").input_value() == EXAMPLES["Matrix product"]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(
    "words",
    [
        "[a](//b.cd)",
        "![](//b.cd/a.png)",
        "https://b.cd",
        "WWW.b.cd",
        "a@b.cd",
        "<b>",
        "&lt;b&gt;",
        "$a$",
    ],
)
def test_an_address_writes_words_and_no_more(page, address, words):
    visit(page, address, view=words)
    message = page.get_by_test_id("stCaptionContainer").filter(has_text="The page's address has")
    assert f"view={words} (one of" in message.inner_text().replace("\N{WORD JOINER}", "")
    assert not message.locator("a, img, em, strong, b, .katex").count()


#: Keeps each title that the player gets, and when.
KEEP_TITLES = """() => {
    addEventListener("click", () => { window.clicked = performance.now() }, true)
    window.titles = []
    const title = document.querySelector(".needle-steps .title")
    new MutationObserver(() => titles.push([title.textContent, performance.now()]))
        .observe(title, { childList: true })
}"""


@pytest.mark.slow
@pytest.mark.browser
def test_the_steps_are_played(page, address):
    visit(page, address, view="steps", text="x = 2\ny = x * x")
    page.get_by_text("Forward, node 1 of 2: x").wait_for()
    page.evaluate(KEEP_TITLES)
    page.get_by_role("button", name="Play").click()
    titles = lambda: page.evaluate("titles.map(([title]) => title)")  # noqa: E731
    until(page, lambda: any("Backward, node 2 of 2" in title for title in titles()), "it goes back")
    assert "Forward, node 2 of 2" in titles()[0]
    assert page.evaluate("titles[0][1] - clicked") < 1000


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_current_node_is_always_in_view(page, address, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(reduced_motion="reduce")  # no frame is on its way
    visit(page, address, view="steps", text=EXAMPLES["A loop in time"])
    page.get_by_text("Forward, node 1 of").wait_for()
    outside = page.evaluate("""async () => {
        const player = document.querySelector(".needle-steps");
        const view = player.querySelector(".picture");
        const outside = [];
        for (let frame = 0; frame < 34; frame++) {
            const current = player.querySelector("svg .node.current").getBoundingClientRect();
            const sight = view.getBoundingClientRect();
            const across = current.left >= sight.left - 1 && current.right <= sight.right + 1;
            const down = current.top >= sight.top - 1 && current.bottom <= sight.bottom + 1;
            if (!across || !down) outside.push(frame);
            player.querySelector("[data-do=next]").click();
            await new Promise(requestAnimationFrame);
        }
        return outside;
    }""")
    assert outside == []


@pytest.mark.slow
@pytest.mark.browser
def test_typed_text_is_carried_out_and_mistakes_are_shown(page, address):
    visit(page, address)
    type_in(page, "x = 4\nx ** 3")
    page.get_by_text("64", exact=True).first.wait_for()
    for text, reason in [
        ("().__class__.__bases__", "names begin and end with a letter"),
        ("9 ** 9 ** 9", "larger than 1e+30"),
        ("ones(10 ** 9)", "at most 10,000, such as"),
        ("(" * 1999, "at most 200 are read"),
        ("x = [[1, 2]]\nx @ x", "inner sizes 2 and 1 differ"),
    ]:
        type_in(page, text)
        page.get_by_text(reason).first.wait_for()  # the drawing says it, too, a moment later
    drawing(page, "which failed").wait_for()
    type_in(page, "x = 5\nx ** 3")
    page.get_by_text("125", exact=True).first.wait_for()


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("length", [3_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_text_that_is_too_long_is_refused_with_its_length(page, address, length):
    visit(page, address)
    type_in(page, "x = 4\nx ** 3")
    page.get_by_text("64", exact=True).first.wait_for()
    too_long = "1 + " * (length // 4)
    type_in(page, too_long)
    page.get_by_text(f"the text has {length:,} characters; at most 2,000 are read").wait_for()
    page.get_by_text("64", exact=True).first.wait_for(state="detached")
    assert page.get_by_role("textbox", name="Expression").input_value() == too_long
    until(page, lambda: text_in(address_now(page)) is None, "the address follows")
    type_in(page, "x = 5\nx ** 3")
    page.get_by_text("125", exact=True).first.wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_the_address_follows_who_writes_faster_than_it(page, address):
    late = []

    def connect(page_end):
        server = page_end.connect_to_server()

        def to_page(message):
            if not late and ForwardMsg.FromString(message).HasField("page_info_changed"):
                late.append(message)
            else:
                page_end.send(message)

        def to_server(message):
            server.send(message)
            if late and late[0]:
                page_end.send(late[0])
                late[0] = None

        server.on_message(to_page)
        page_end.on_message(to_server)

    page.route_web_socket(re.compile("_stcore/stream"), connect)
    page.add_init_script("""
        const push = history.pushState;
        window.texts = []; // of the addresses that the page has had, one after the other
        history.pushState = (...all) => {
            push.apply(history, all);
            texts.push(new URLSearchParams(location.search).get("text"));
        };
    """)
    visit(page, address)
    type_in(page, "x = 4\nx ** 3")
    until(page, lambda: late, "an address is on its way")
    type_in(page, EXAMPLES["One value, two paths"])
    until(page, lambda: page.evaluate("texts") == ["x = 4\nx ** 3", None], "the address follows")
    assert text_in(address_now(page)) is None
    drawing(page, "of v4").wait_for()


@pytest.mark.slow
@pytest.mark.browser
def test_to_the_playground_and_back(page, address):
    visit(page, address)
    type_in(page, "x = 4\nx ** 3")
    page.get_by_text("64", exact=True).first.wait_for()
    page.get_by_role("link", name="Playground").click()
    page.locator("canvas[data-canvas=plane]").wait_for()
    assert text_in(address_now(page)) is None
    explorer = page.get_by_role("link", name="Explorer")
    expect(explorer).to_have_attribute("href", re.compile("text="))
    explorer.click()
    page.get_by_text("64", exact=True).first.wait_for()
    until(page, lambda: text_in(address_now(page)) == "x = 4\nx ** 3", "the address follows")


@pytest.mark.slow
@pytest.mark.browser
def test_a_picture_is_downloaded(page, address):
    visit(page, address)
    with page.expect_download() as download:
        page.get_by_role("button", name="PDF").click()
    assert download.value.suggested_filename == "forward.pdf"
    with open(download.value.path(), "rb") as file:
        assert file.read(4) == b"%PDF"


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 700, 1280])
def test_nothing_is_cut_off(page, address, width):
    page.set_viewport_size({"width": width, "height": 900})
    visit(page, address, text=EXAMPLES["Network with weight decay"], view="gradient")
    drawing(page, "gradient graph of J").wait_for()
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    for box in page.get_by_role("radio").all():
        place = box.locator("..").bounding_box()
        assert place["x"] >= 0
        assert place["x"] + place["width"] <= width
