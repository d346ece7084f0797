"""Activations, gradients, weights, filters, attention, and the tree of modules."""

from __future__ import annotations

import numpy as np
import pytest

import needle as ndl
from needle import nn
from needle.apps.models import LanguageModel, ResNet9
from viz import plots
from viz.text import number

rng = np.random.default_rng(0)
X = rng.standard_normal((32, 6))


def network() -> nn.Sequential:
    return nn.Sequential(
        *(nn.Linear(6, 8, rng=0), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5, rng=0)),
        *(nn.Linear(8, 4, rng=1), nn.Tanh(), nn.Flatten(), nn.Linear(4, 3, rng=2)),
    )


def everything(model: nn.Module) -> list:
    """What a picture must leave as it is."""
    return [
        [(name, tensor.numpy().tolist()) for name, tensor in model.state_dict().items()],
        [sorted(vars(module)) for _, module in model.named_modules()],
        [module.training for _, module in model.named_modules()],
        [parameter.grad for parameter in model.parameters()],
        model[3]._rng.bit_generator.state,
        np.random.get_state()[1].tolist(),
    ]


def rows(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


# Activations


def test_every_layer_that_computes_something_has_its_outputs_drawn(texts, legible) -> None:
    model = nn.Sequential(nn.Linear(6, 5, rng=0), nn.Sigmoid(), nn.Flatten(), nn.Linear(5, 2, rng=1))
    ax = plots.activations(model, X)
    assert rows(ax) == ["0 Linear", "1 Sigmoid", "3 Linear"]
    out = X @ model[0].weight.numpy() + model[0].bias.numpy()
    assert f"mean {out.mean():.2g}, std {out.std():.2g}" in texts(ax)
    legible(ax)


def test_looking_at_activations_changes_nothing() -> None:
    model = network()
    before = everything(model)
    plots.activations(model, X)
    assert everything(model) == before
    assert "forward" not in vars(model[0])


def test_looking_at_activations_changes_nothing_where_the_model_fails() -> None:
    model = network()
    before = everything(model)
    with pytest.raises(ValueError, match="Linear: needs shape"):
        plots.activations(model, X[:, :3])
    assert everything(model) == before


def test_dead_and_saturated_units_are_told(texts, legible) -> None:
    model = nn.Sequential(nn.Linear(6, 8, rng=0), nn.ReLU(), nn.Linear(8, 8, rng=1), nn.Tanh())
    model[0].bias.data = model[0].bias - ndl.Tensor(100 * (np.arange(8) < 3)).reshape((1, 8))
    model[2].weight.data = model[2].weight * 1000
    ax = plots.activations(model, X)
    assert "3 of 8 units dead" in texts(ax)
    assert any(text.endswith("% saturated") for text in texts(ax))
    legible(ax)


def test_units_of_images_are_channels(texts) -> None:
    model = nn.Sequential(nn.Conv(1, 4, 3, rng=0), nn.ReLU())
    model[0].bias.data = ndl.Tensor([0.0, -100.0, 0.0, 0.0])
    assert "1 of 4 units dead" in texts(plots.activations(model, rng.standard_normal((2, 1, 5, 5))))


def test_a_layer_that_is_used_several_times_has_all_its_outputs_drawn() -> None:
    shared = nn.Linear(6, 6, rng=0)
    assert rows(plots.activations(nn.Sequential(shared, nn.Tanh(), shared), X)) == ["0 Linear ×2", "1 Tanh"]


def test_nan_is_told(texts) -> None:
    model = nn.Sequential(nn.Linear(6, 2, rng=0))
    model[0].bias.data = ndl.Tensor([[np.nan, 0.0]])
    assert "32 nan or inf" in texts(plots.activations(model, X))


def test_large_networks_are_drawn_in_part(legible) -> None:
    model = nn.Sequential(*[nn.Linear(6, 6, rng=i) for i in range(70)])
    ax = plots.activations(model, X)
    assert len(rows(ax)) == 61
    assert "… 10 more" in rows(ax)


def test_no_bin_lies_where_the_numbers_cannot() -> None:
    model = nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 40), nn.ReLU())
    ax = plots.activations(model, 3 * X)
    tanh, relu = ([x.get_data().edges for x in ax.patches if x.get_data().baseline == row] for row in (2, 0))
    for edges in tanh:
        assert -1 <= edges[0] < -0.9
        assert 0.9 < edges[-1] <= 1
    assert {edges[0] for edges in relu} == {0}


# Gradients


def test_gradients_are_those_of_backward_and_none_is_written(texts, legible) -> None:
    model = network()
    loss = nn.SoftmaxLoss()(model(ndl.Tensor(X)), ndl.Tensor(np.arange(32) % 3))
    ax = plots.gradients(model, loss)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert rows(ax) == [name.replace("modules.", "") for name, _ in model.named_parameters()]
    loss.backward()
    largest = [f"largest {number(float(abs(p.grad.numpy()).max()), 2)}" for p in model.parameters()]
    assert [text for text in texts(ax) if text.startswith("largest")] == largest
    assert texts(plots.gradients(model)) == texts(ax)
    legible(ax)


def test_parameters_without_gradient_are_told(texts, legible) -> None:
    model = nn.Sequential(nn.Linear(2, 2, rng=0), nn.Linear(2, 2, rng=1))
    model[0].bias.requires_grad = False
    ax = plots.gradients(model, model[0](ndl.Tensor(np.zeros((3, 2)))).sum() + model[1].weight.sum())
    assert {"all 0", "no gradient"} <= set(texts(ax))
    legible(ax)


# Weights, filters, attention


def test_a_matrix_is_drawn_number_by_number(legible) -> None:
    weight = ndl.Tensor([[1.0, -4.0, 0.5], [0.0, 2.0, np.nan]])
    ax = plots.weights(weight)
    np.testing.assert_array_equal(ax.images[0].get_array().filled(np.nan), weight.numpy())
    assert ax.images[0].get_clim() == (-4, 4)
    legible(ax)


def test_columns_are_drawn_as_images(legible) -> None:
    weight = rng.standard_normal((12, 10))
    ax = plots.weights(weight, image=(3, 4))
    assert len(ax.images) == 10
    np.testing.assert_array_equal(ax.images[7].get_array(), weight[:, 7].reshape(3, 4))
    legible(ax)


def test_weights_of_a_module_are_drawn_by_parameter(legible) -> None:
    ax = plots.weights(network())
    assert len(rows(ax)) == 8
    legible(ax)


def test_there_is_a_kernel_for_each_pair_of_channels(texts, legible) -> None:
    conv = nn.Conv(3, 4, 5, rng=0)
    ax = plots.filters(conv)
    assert len(ax.images) == 12
    np.testing.assert_array_equal(ax.images[1 * 4 + 2].get_array(), conv.weight.numpy()[:, :, 1, 2])
    assert len({image.get_clim() for image in ax.images}) == 1
    legible(ax)
    alone = plots.filters(nn.Conv(1, 16, 3, rng=0))
    assert len(alone.images) == 16
    legible(alone)


@pytest.mark.slow
def test_of_many_pairs_of_channels_some_are_drawn(texts) -> None:
    many = plots.filters(nn.Conv(20, 40, 3, rng=0))
    assert "Filters 3 × 3: 20 in, 40 out, 16 × 16 drawn" in texts(many)
    assert len(many.images) == 256


@pytest.fixture(scope="module")
def maps() -> ndl.Tensor:
    x = ndl.Tensor(3 * np.random.default_rng(1).standard_normal((2, 6, 8)))
    return nn.AttentionLayer(8, 2, 4, rng=0)(x, return_probs=True)[1]


def test_there_is_a_map_for_each_head(maps, texts, legible) -> None:
    ax = plots.attention(maps, ["to", "be", "or", "not", "to", "be"], batch=1)
    assert len(ax.images) == 2
    np.testing.assert_array_equal(ax.images[1].get_array(), maps.numpy()[1, 1])
    assert {"head 0", "head 1", "not"} <= set(texts(ax))
    legible(ax)


def test_a_single_head_has_its_weights_written(maps, texts, legible) -> None:
    ax = plots.attention(maps, "a bc\nd", head=1)
    assert rows(ax) == ["a", "␣", "b", "c", "↵", "d"]
    assert texts(ax).count("1.00") >= 1
    assert "Attention, head 1" in texts(ax)
    legible(ax)


def test_attention_between_sequences_of_different_length(legible) -> None:
    ax = plots.attention(np.full((30, 4), 0.25), keys="wxyz")
    assert [label.get_text() for label in ax.get_xticklabels()] == list("wxyz")
    legible(ax)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: plots.activations(lambda x: x, X), TypeError, "activations: needs a Module, got function"),
        (lambda: plots.activations(nn.Flatten(), X), ValueError, "no layers to look into"),
        (lambda: plots.gradients(nn.Linear(1, 1)), RuntimeError, "call loss.backward"),
        (lambda: plots.gradients(nn.Linear(1, 1), 3.0), TypeError, "loss: needs a Tensor"),
        (lambda: plots.gradients(nn.ReLU(), ndl.Tensor(1.0)), ValueError, "no parameters"),
        (lambda: plots.weights(nn.ReLU()), ValueError, "no parameters"),
        (lambda: plots.weights(np.ones((2, 2, 2))), ValueError, "one, two or four axes"),
        (lambda: plots.weights(np.ones((9, 2)), image=(2, 4)), ValueError, "8 rows"),
        (lambda: plots.filters(nn.Linear(2, 2)), TypeError, "needs a Conv, got Linear"),
        (lambda: plots.filters(np.ones((3, 3))), ValueError, "height, width, in_channels, out_channels"),
        (lambda: plots.attention(np.ones(3)), ValueError, "attention: weights need shape"),
        (lambda: plots.attention(np.ones((2, 3, 3)), head=2), IndexError, "from 0 to 1, got 2"),
        (lambda: plots.attention(np.ones((3, 3)), "ab"), ValueError, "2 tokens for 3 places"),
        (
            lambda: plots.attention(np.eye(3) - 0.25),
            ValueError,
            "one is −0.25; take the softmax of scores over the last",
        ),
        (lambda: plots.attention(np.log(np.tri(3) / 2 + 0.5)), ValueError, "take the softmax of scores"),
        (lambda: plots.module_tree([]), TypeError, "needs a Module, got list"),
        (lambda: plots.module_tree(nn.ReLU(), depth=-1), ValueError, "at least 0, got -1"),
    ],
)
def test_wrong_input_is_refused_with_the_reason(call, error, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


# Trees


def test_the_tree_says_names_classes_settings_shapes_and_parameters(texts, drawn, legible) -> None:
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1, bias=False))
    ax = plots.module_tree(model)
    expected = {
        "Sequential",
        "0:",
        "Linear",
        "in_features=2, out_features=8",
        "weight 2×8, bias 1×8",
        "24",
        "8",
    }
    assert expected <= set(texts(ax))
    assert "Sequential: 32 parameters" in texts(ax)
    assert len(drawn(ax, "module")) == 4
    legible(ax)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        ResNet9,
        lambda: LanguageModel(16, 8, 32, num_layers=3, seq_model="transformer", seq_len=9),
    ],
)
def test_whole_networks_fit_on_a_page(make, texts, legible) -> None:
    model = make()
    ax = plots.module_tree(model)
    assert f"{sum(p.size for p in model.parameters()):,}" in texts(ax)
    assert max(ax.figure.get_size_inches()) < 12
    legible(ax)


def test_neighbours_that_are_alike_are_folded(texts, drawn) -> None:
    block = lambda n: nn.Sequential(nn.Linear(n, n), nn.Tanh())  # noqa: E731
    ax = plots.module_tree(nn.Sequential(block(3), block(3), block(3), block(4)))
    assert "Sequential  × 3" in texts(ax)
    assert "0 … 2:" in texts(ax)
    assert "3 × 12" in texts(ax)
    assert len(drawn(ax, "module")) == 7


def test_a_module_that_is_used_twice_is_marked_and_counted_once(texts) -> None:
    shared = nn.Linear(3, 3)
    ax = plots.module_tree(nn.Sequential(shared, nn.Tanh(), shared))
    assert "the same as 0" in texts(ax)
    assert "Sequential: 12 parameters" in texts(ax)


def test_a_module_that_contains_itself_is_drawn(texts) -> None:
    model = nn.Sequential(nn.Linear(1, 1))
    model[0].owner = model
    assert "the same as the whole" in texts(plots.module_tree(model))


def test_the_words_above_a_small_tree_are_apart(legible) -> None:
    legible(plots.module_tree(nn.ReLU()))


def test_attention_that_is_no_number_is_drawn(legible) -> None:
    legible(plots.attention(np.full((3, 3), np.nan)))


def test_depth_closes_what_is_below(texts, drawn) -> None:
    ax = plots.module_tree(ResNet9(), depth=2)
    assert "Residual  (9 inside)" in texts(ax)
    assert len(drawn(ax, "module")) == 12
