"""The toy datasets: their shapes, their formulae, their noise, and their refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from needle.data import toy

every_dataset = pytest.mark.parametrize("name", toy.DATASETS)


def rng(seed=0):
    return np.random.default_rng(seed)


@every_dataset
@given(n=st.integers(1, 300), noise=st.floats(0, toy.MAX_NOISE), seed=st.integers(0, 2**32))
def test_shapes_labels_and_determinism(name, n, noise, seed):
    points, labels = toy.DATASETS[name](n, noise, rng(seed))
    assert points.shape == (n, 2)
    assert labels.shape == (n,)
    assert points.dtype == labels.dtype == np.float64
    assert np.isfinite(points).all()
    assert set(labels) <= {-1.0, 1.0}
    again = toy.DATASETS[name](n, noise, rng(seed))
    np.testing.assert_array_equal(points, again[0])
    np.testing.assert_array_equal(labels, again[1])


@every_dataset
def test_another_seed_gives_other_data(name):
    dataset = toy.DATASETS[name]
    assert not np.array_equal(dataset(50, 0.1, rng(1))[0], dataset(50, 0.1, rng(2))[0])


@every_dataset
def test_both_classes_are_there(name):
    labels = toy.DATASETS[name](500, 0, rng())[1]
    share = (labels > 0).mean()
    expected = {"diag": 1 / 8, "split": 0.4}.get(name, 0.5)
    assert share == pytest.approx(expected, abs=0.07)


@pytest.mark.parametrize("name", [name for name in toy.DATASETS if name != "gaussian"])
def test_without_noise_every_point_lies_in_the_plane_shown(name):
    points, _ = toy.DATASETS[name](2000, 0, rng())
    low, high = toy.DOMAIN
    assert points.min() >= low
    assert points.max() <= high


RULES = {
    "circle": lambda x1, x2: np.hypot(x1, x2) < 2.5,
    "xor": lambda x1, x2: x1 * x2 >= 0,
    "simple": lambda x1, x2: x1 < 0,
    "diag": lambda x1, x2: x1 + x2 < -6,
    "split": lambda x1, x2: np.abs(x1) > 3.6,
}


@pytest.mark.parametrize("name", RULES)
def test_labels_follow_the_rule_without_noise_and_break_it_with(name):
    points, labels = toy.DATASETS[name](1000, 0, rng())
    np.testing.assert_array_equal(labels > 0, RULES[name](*points.T))
    points, labels = toy.DATASETS[name](1000, 0.5, rng())
    wrong = ((labels > 0) != RULES[name](*points.T)).mean()
    assert 0.05 < wrong < 0.5


def test_circle_leaves_a_gap_between_disc_and_ring():
    points, labels = toy.circle(1000, 0, rng())
    radius = np.hypot(*points.T)
    assert radius[labels > 0].max() < 2.5
    assert radius[labels < 0].min() >= 3.5
    assert radius.max() <= 5


def test_xor_leaves_the_axes_free():
    points, _ = toy.xor(1000, 0, rng())
    assert np.abs(points).min() >= 0.3


@pytest.mark.parametrize(("noise", "variance"), [(0, 0.5), (0.5, 4.0)])
def test_gaussian_noise_is_the_variance(noise, variance):
    points, labels = toy.gaussian(20_000, noise, rng())
    for label in (1, -1):
        cloud = points[labels == label]
        assert cloud.mean(axis=0) == pytest.approx([2 * label, 2 * label], abs=0.1)
        assert cloud.var(axis=0) == pytest.approx([variance, variance], rel=0.05)


def test_spiral_follows_its_formula():
    points, labels = toy.spiral(500, 0, rng())
    i = np.arange(250)
    radius, angle = 5 * i / 250, 3.5 * np.pi * i / 250
    arm = np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=1)
    np.testing.assert_allclose(points[labels > 0], arm, atol=1e-12)
    np.testing.assert_allclose(points[labels < 0], -arm, atol=1e-12)
    noisy, _ = toy.spiral(500, 0.3, rng())
    assert 0 < np.abs(noisy - points).max() <= 0.3


def test_moons_follow_their_formula():
    points, labels = toy.moons(1000, 0, rng())
    upper, lower = points[labels > 0] + (1.5, 0.75), points[labels < 0] - (1.5, 0.75)
    np.testing.assert_allclose(np.hypot(*upper.T), 3)
    np.testing.assert_allclose(np.hypot(*lower.T), 3)
    assert upper[:, 1].min() >= 0
    assert lower[:, 1].max() <= 0
    # Each reaches far into the other's half circle.
    assert np.hypot(*(points[labels > 0] - (1.5, 0.75)).T).min() < 2
    assert np.hypot(*(points[labels < 0] + (1.5, 0.75)).T).min() < 2
    noisy, _ = toy.moons(1000, 0.5, rng())
    assert 1 < np.abs(noisy - points).max() <= 1.5


# Regression


@pytest.mark.parametrize("name", toy.REGRESSION)
@given(n=st.integers(1, 300), noise=st.floats(0, toy.MAX_NOISE), seed=st.integers(0, 2**32))
def test_regression_shapes_and_determinism(name, n, noise, seed):
    points, labels = toy.REGRESSION[name](n, noise, rng(seed))
    assert (points.shape, labels.shape) == ((n, 2), (n,))
    assert points.dtype == labels.dtype == np.float64
    assert np.abs(points).max() <= 6
    for array, again in zip((points, labels), toy.REGRESSION[name](n, noise, rng(seed)), strict=True):
        np.testing.assert_array_equal(array, again)


def test_a_regression_problem_is_no_classification_problem():
    assert not toy.REGRESSION.keys() & toy.DATASETS.keys()


def test_plane_follows_its_formula():
    points, labels = toy.plane(1000, 0, rng())
    np.testing.assert_allclose(labels, (points[:, 0] + points[:, 1]) / 10)
    same_points, noisy = toy.plane(1000, 0.25, rng())
    np.testing.assert_array_equal(points, same_points)
    assert 0.2 < np.abs(noisy - labels).max() <= 0.3


def hills(x, y):
    best = 0.0
    for cx, cy, sign in [
        (-4, 2.5, 1),
        (0, 2.5, -1),
        (4, 2.5, 1),
        (-4, -2.5, -1),
        (0, -2.5, 1),
        (4, -2.5, -1),
    ]:
        height = sign * max(0, 1 - np.hypot(x - cx, y - cy) / 2)
        best = height if abs(height) > abs(best) else best
    return best


def test_multi_gaussian_follows_its_formula():
    points, labels = toy.multi_gaussian(1000, 0, rng())
    np.testing.assert_allclose(labels, [hills(x, y) for x, y in points], atol=1e-12)
    assert labels.min() < -0.8
    assert labels.max() > 0.8
    assert (labels == 0).mean() > 0.3
    same_points, noisy = toy.multi_gaussian(1000, 0.25, rng())
    np.testing.assert_array_equal(points, same_points)
    assert (noisy != labels).mean() > 0.5


@pytest.mark.parametrize("n", [0, -3, 2.5, True, "many", None])
def test_a_number_of_points_that_is_none(n):
    with pytest.raises(ValueError, match=r"number of points must be a whole number .* got"):
        toy.circle(n, 0, rng())


@pytest.mark.parametrize("noise", [-0.1, 0.6, float("nan"), float("inf")])
def test_noise_out_of_range(noise):
    with pytest.raises(ValueError, match=r"noise must lie between 0 and 0\.5, got"):
        toy.spiral(10, noise, rng())


def test_a_seed_in_place_of_a_generator():
    for ours, expected in zip(toy.xor(10, 0.1, 7), toy.xor(10, 0.1, rng(7)), strict=True):
        np.testing.assert_array_equal(ours, expected)
    with pytest.raises(TypeError, match=r"rng: needs a numpy\.random\.Generator, a seed .* got float"):
        toy.xor(10, 0, 7.0)


@given(n=st.integers(2, 200), share=st.floats(0.01, 0.99))
def test_train_test_split_parts_the_data(n, share):
    points, labels = toy.gaussian(n, 0.1, rng())
    (train, train_labels), (test, test_labels) = toy.train_test_split(points, labels, share, rng(1))
    assert len(train) == len(train_labels) == min(max(round(n * share), 1), n - 1)
    assert len(test) == len(test_labels) == n - len(train)
    rows = np.concatenate([np.c_[train, train_labels], np.c_[test, test_labels]])
    expected = np.c_[points, labels]
    np.testing.assert_array_equal(rows[np.lexsort(rows.T)], expected[np.lexsort(expected.T)])


def test_train_test_split_mixes_the_classes():
    points, labels = toy.circle(500, 0, rng())
    (_, train_labels), _ = toy.train_test_split(points, labels, 0.5, rng())
    assert 0.35 < (train_labels > 0).mean() < 0.65


@pytest.mark.parametrize(
    ("n", "labels", "share", "message"),
    [
        (4, 3, 0.5, "4 points but 3 labels"),
        (1, 1, 0.5, "at least 2 are needed"),
        (4, 4, 0, "above 0 and below 1, got 0"),
        (4, 4, 1.0, r"above 0 and below 1, got 1\.0"),
    ],
)
def test_train_test_split_refuses(n, labels, share, message):
    with pytest.raises(ValueError, match=message):
        toy.train_test_split(np.zeros((n, 2)), np.zeros(labels), share, rng())


@pytest.mark.parametrize("name", toy.DATASETS)
def test_without_a_generator_numpys_global_state_is_used(name):
    def data(seed):
        np.random.seed(seed)
        return toy.train_test_split(*toy.DATASETS[name](20))

    for (points, labels), (same_points, same_labels) in zip(data(1), data(1), strict=True):
        np.testing.assert_array_equal(points, same_points)
        np.testing.assert_array_equal(labels, same_labels)
    assert not np.array_equal(data(1)[0][0], data(2)[0][0])
