"""Datasets, transforms and the loader: what a batch holds, what is drawn, in which order and by whom."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import needle as ndl
from needle.autograd import Tensor
from needle.data import (
    DataLoader,
    Dataset,
    ImageDataset,
    NDArrayDataset,
    RandomCrop,
    RandomFlipHorizontal,
    Transform,
)


def arrays(loader) -> list[list[np.ndarray]]:
    return [[part.numpy() for part in batch] for batch in loader]


def same(batches, expected) -> None:
    assert len(batches) == len(expected)
    for batch, wanted in zip(batches, expected, strict=True):
        assert len(batch) == len(wanted)
        for part, array in zip(batch, wanted, strict=True):
            np.testing.assert_array_equal(part, array)


# The loader


def test_batches_are_the_items_in_order():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10)
    batches = arrays(DataLoader(NDArrayDataset(X, y), batch_size=4))
    same(batches, [[X[:4], y[:4]], [X[4:8], y[4:8]], [X[8:], y[8:]]])


def test_a_batch_is_of_constant_tensors():
    ((x,),) = DataLoader(NDArrayDataset(np.arange(3)), batch_size=3)
    assert type(x) is Tensor
    assert x.is_leaf()
    assert not x.requires_grad
    assert x.device == ndl.default_device()
    assert x.dtype == ("float32" if ndl.BACKEND == "nd" else "int64")


def test_dtype_and_device_of_the_batches():
    loader = DataLoader(NDArrayDataset(np.arange(3)), 3, dtype="float64", device=ndl.all_devices()[-1])
    if not loader.device.enabled():
        loader.device = ndl.cpu()
    ((x,),) = loader
    assert (x.dtype, x.device) == (np.dtype("float64"), loader.device)
    with pytest.raises(TypeError, match="device"):
        DataLoader(NDArrayDataset(np.arange(3)), device="cuda")


@pytest.mark.parametrize(
    ("n", "batch_size", "drop_last", "lengths"),
    [
        (10, 4, False, [4, 4, 2]),
        (10, 4, True, [4, 4]),
        (8, 4, True, [4, 4]),
        (8, 4, False, [4, 4]),
        (3, 5, False, [3]),
        (3, 1, False, [1, 1, 1]),
        (3, None, False, [1, 1, 1]),
    ],
)
@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_lengths_of_batches(n, batch_size, drop_last, lengths, prefetch):
    loader = DataLoader(NDArrayDataset(np.arange(n)), batch_size, drop_last=drop_last, prefetch=prefetch)
    assert len(loader) == len(lengths)
    assert [len(x.numpy()) for (x,) in loader] == lengths


def test_shuffling_is_one_permutation_of_numpys_global_state():
    loader = DataLoader(NDArrayDataset(np.arange(10)), batch_size=3, shuffle=True)
    np.random.seed(7)
    found = [np.concatenate([x for (x,) in arrays(loader)]) for _ in range(2)]
    np.random.seed(7)
    np.testing.assert_array_equal(found, [np.random.permutation(10), np.random.permutation(10)])


def test_the_order_is_drawn_when_the_loop_begins():
    loader = DataLoader(NDArrayDataset(np.arange(10)), batch_size=10, shuffle=True)
    np.random.seed(7)
    waiting = iter(loader)
    np.random.seed(8)
    ((x,),) = waiting
    np.random.seed(7)
    np.testing.assert_array_equal(x.numpy(), np.random.permutation(10))


def test_without_shuffling_nothing_is_drawn():
    np.random.seed(7)
    arrays(DataLoader(NDArrayDataset(np.arange(10)), batch_size=3))
    drawn = np.random.rand()
    np.random.seed(7)
    assert drawn == np.random.rand()


@pytest.mark.parametrize(
    "seed", [3, np.int64(3), np.random.default_rng(3)], ids=["int", "int64", "generator"]
)
def test_a_seed_decides_the_order_and_leaves_the_global_state_alone(seed):
    expected = np.random.default_rng(3)
    np.random.seed(7)
    loader = DataLoader(NDArrayDataset(np.arange(10)), batch_size=10, shuffle=True, rng=seed)
    for _ in range(2):  # another order in each epoch
        ((x,),) = loader
        np.testing.assert_array_equal(x.numpy(), expected.permutation(10))
    drawn = np.random.rand()
    np.random.seed(7)
    assert drawn == np.random.rand()


class Squares(Dataset):
    """Takes only a number, as most people's datasets do."""

    def __init__(self, n=7, transforms=None):
        super().__init__(transforms)
        self.items = [(float(i), [i**2, i**3]) for i in range(n)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        x, y = self.items[index]  # a list refuses an array of numbers
        return self.apply_transforms(x), y


class Bare:
    """Knows nothing of needle; an item is not a tuple."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        assert type(index) is int
        return Tensor([index, -index])


def test_a_dataset_that_takes_one_number_at_a_time():
    same(
        arrays(DataLoader(Squares(), batch_size=5)),
        [[np.arange(5), [[i**2, i**3] for i in range(5)]], [[5, 6], [[25, 125], [36, 216]]]],
    )


def test_a_subclass_that_changes_the_items_of_a_dataset():
    class Odd(NDArrayDataset):
        def __getitem__(self, index):
            (x,) = super().__getitem__(index)
            return x, int(x % 2)  # not possible with several at once

    same(arrays(DataLoader(Odd(np.arange(3)), batch_size=3)), [[[0, 1, 2], [0, 1, 0]]])

    class Doubled(Odd):
        def take(self, indices):
            return (2 * self.arrays[0][indices],)

    same(arrays(DataLoader(Doubled(np.arange(3)), batch_size=3)), [[[0, 2, 4]]])


def test_a_dataset_that_is_no_dataset():
    same(arrays(DataLoader(Bare(), batch_size=2)), [[[[0, 0], [1, -1]]], [[[2, -2], [3, -3]]]])


def test_transforms_see_one_item_at_a_time():
    seen = []

    def note(x):
        seen.append(np.shape(x))
        return x + 1

    images = np.zeros((3, 4, 4, 1), "float32")
    for dataset in (ImageDataset(images, np.arange(3), [note, note]), Squares(3, [note, note])):
        x, _ = arrays(DataLoader(dataset, batch_size=3))[0]
        assert (x - x[0] == 0).all() or isinstance(dataset, Squares)
        assert x.max() == (2 if isinstance(dataset, ImageDataset) else 4)
    assert seen == [(4, 4, 1)] * 6 + [()] * 6


class Slow(Dataset):
    """Notes which thread asks for its items."""

    def __init__(self, fail_at=None, n=8):
        self.n, self.fail_at, self.threads, self.asked = n, fail_at, set(), []

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        self.threads.add(threading.current_thread())
        self.asked.append(index)
        if index == self.fail_at:
            raise ZeroDivisionError(f"item {index} is broken")
        return np.array([index])


@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_prefetching_changes_nothing_but_the_thread(count):
    def augmented(prefetch):
        images = np.random.default_rng(0).random((9, 5, 6, 2))
        rng = np.random.default_rng(1)
        dataset = ImageDataset(images, np.arange(9), [RandomCrop(2, rng=rng), RandomFlipHorizontal(rng=rng)])
        loader = DataLoader(dataset, batch_size=2, shuffle=True, rng=5, prefetch=prefetch)
        return arrays(loader) + arrays(loader)

    same(augmented(count), augmented(0))

    dataset = Slow()
    assert len(arrays(DataLoader(dataset, prefetch=count))) == 8
    assert threading.current_thread() not in dataset.threads
    assert not any(thread.is_alive() for thread in dataset.threads)
    dataset = Slow()
    arrays(DataLoader(dataset))
    assert dataset.threads == {threading.current_thread()}


def test_an_error_in_the_thread_is_raised_where_its_batch_is_asked_for():
    dataset = Slow(fail_at=3)
    batches = iter(DataLoader(dataset, prefetch=2))
    assert [next(batches)[0].numpy().item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ZeroDivisionError, match="item 3 is broken"):
        next(batches)
    assert not any(thread.is_alive() for thread in dataset.threads)


def test_the_thread_ends_with_the_consumer(no_gc):
    dataset = Slow(n=1000)
    for (x,) in DataLoader(dataset, prefetch=2):
        if x.numpy() == 5:
            break
    assert not any(thread.is_alive() for thread in dataset.threads)
    assert len(dataset.asked) <= 9


def test_no_thread_before_the_first_batch_is_asked_for():
    dataset = Slow()
    iter(DataLoader(dataset, prefetch=2))
    assert dataset.asked == []


def test_two_loops_over_one_loader_do_not_disturb_each_other():
    loader = DataLoader(NDArrayDataset(np.arange(4)), batch_size=2, prefetch=1)
    pairs = [(a.numpy().tolist(), b.numpy().tolist()) for (a,) in loader for (b,) in loader]
    assert pairs == [([0, 1], [0, 1]), ([0, 1], [2, 3]), ([2, 3], [0, 1]), ([2, 3], [2, 3])]


@pytest.mark.parametrize("prefetch", [0, 2])
def test_next_goes_on_with_the_pass_that_began_last(prefetch):
    loader = DataLoader(NDArrayDataset(np.arange(6)), batch_size=2, prefetch=prefetch)
    with pytest.raises(TypeError, match=r"begin one with iter\(loader\) first"):
        next(loader)
    same([[x.numpy() for x in next(iter(loader))]], [[[0, 1]]])
    iter(loader)
    same([[x.numpy() for x in next(loader)] for _ in range(3)], [[[0, 1]], [[2, 3]], [[4, 5]]])
    with pytest.raises(StopIteration):
        next(loader)
    batches = iter(loader)
    same([[x.numpy() for x in next(one)] for one in (batches, loader)], [[[0, 1]], [[2, 3]]])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"batch_size": 0}, ValueError, "batch_size must be a whole number of at least 1, got 0"),
        ({"batch_size": -2}, ValueError, "got -2"),
        ({"batch_size": 2.0}, ValueError, r"got 2\.0"),
        ({"batch_size": True}, ValueError, "got True"),
        ({"prefetch": -1}, ValueError, "prefetch must be a whole number of at least 0, got -1"),
        ({"rng": "seed"}, TypeError, r"rng: needs a numpy\.random\.Generator, a seed .* got str"),
        ({"batch_size": 9, "drop_last": True}, ValueError, "leaves nothing of 3 items in batches of 9"),
    ],
)
def test_refusals(options, error, words):
    with pytest.raises(error, match=words):
        DataLoader(NDArrayDataset(np.arange(3)), **options)


def test_an_empty_dataset_is_refused():
    with pytest.raises(ValueError, match="the dataset is empty"):
        DataLoader(NDArrayDataset(np.zeros((0, 3))))


def test_items_that_do_not_fit_into_one_batch():
    class Ragged(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return np.zeros(3), np.zeros((i + 1, 2))

    with pytest.raises(ValueError, match=r"part 1 of the items has the shapes \(1, 2\), \(2, 2\)"):
        arrays(DataLoader(Ragged(), batch_size=2))
    assert len(arrays(DataLoader(Ragged()))) == 2

    class Uneven(Ragged):
        def __getitem__(self, i):
            return (0,) * (i + 1)

    with pytest.raises(ValueError, match=r"\[1, 2\] parts; all need the same number"):
        arrays(DataLoader(Uneven(), batch_size=2))


def test_what_a_subclass_must_give_is_named():
    class Nothing(Dataset):
        pass

    with pytest.raises(NotImplementedError, match="Nothing needs a method __len__"):
        len(Nothing())
    with pytest.raises(NotImplementedError, match="Nothing needs a method __getitem__"):
        Nothing()[0]
    with pytest.raises(NotImplementedError, match="Transform needs a method __call__"):
        Transform()(0)


# Datasets in memory


def test_arrays_as_a_dataset():
    a, b = np.arange(12).reshape(4, 3), [5, 6, 7, 8]
    dataset = NDArrayDataset(a, b, Tensor([1, 2, 3, 4]))
    assert len(dataset) == 4
    x, y, z = dataset[2]
    np.testing.assert_array_equal(x, [6, 7, 8])
    assert (y, z) == (7, 3)
    for index in (slice(1, 3), np.array([3, 0]), [2, 2]):
        x, y, _ = dataset[index]
        np.testing.assert_array_equal(x, a[index])
        np.testing.assert_array_equal(y, np.array(b)[index])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "got none"),
        ([np.zeros(3), np.zeros((4, 2))], r"got \(3,\), \(4, 2\)"),
        ([np.float32(1)], r"got \(\)"),
    ],
)
def test_arrays_of_different_lengths(given, words):
    with pytest.raises(ValueError, match=f"needs arrays of one length, {words}"):
        NDArrayDataset(*given)


def test_images_of_bytes_become_floats_from_0_to_1():
    images = np.arange(0, 256, 15, dtype="uint8").reshape(1, 3, 6, 1)
    image, label = ImageDataset(images, np.array([4]))[0]
    assert image.dtype == np.float32
    assert label == 4
    np.testing.assert_array_equal(image, images[0].astype("float32") / 255)
    floats = images / 7.0
    np.testing.assert_array_equal(ImageDataset(floats, np.array([4]))[0][0], floats[0])


def test_the_index_of_an_image_dataset_with_transforms():
    images, labels = np.random.default_rng(0).random((5, 3, 4, 2)), np.arange(5)
    mirrored = ImageDataset(images, labels, [RandomFlipHorizontal(1.0)])
    for index in (2, -1, slice(1, 4), slice(4, 2), np.array([3, 3, 0]), np.array([], int)):
        x, y = mirrored[index]
        np.testing.assert_array_equal(x, images[index][..., ::-1, :])
        np.testing.assert_array_equal(y, labels[index])


def test_digits():
    train, test = ndl.data.digits(), ndl.data.digits(train=False)
    assert (len(train), len(test)) == (1442, 355)
    image, label = train[0]
    assert (image.shape, image.dtype, label) == ((8, 8, 1), np.dtype("float32"), 0)
    images, labels = train[:]
    assert (images.min(), images.max()) == (0, 1)
    for part in (train, test):
        np.testing.assert_allclose(np.bincount(part.labels) / len(part), 0.1, atol=0.005)
    # The two parts share no image, and come in the same order each time.
    rows = {image.tobytes() for image in images}
    assert not rows & {image.tobytes() for image in test[:][0]}
    for again in (ndl.data.digits(), ndl.data.digits(train=True)):
        np.testing.assert_array_equal(again.images, images)
        np.testing.assert_array_equal(again.labels, labels)
    assert ndl.data.digits(transforms=[lambda image: image * 2])[:][0].max() == 2


def test_digits_with_a_loader():
    loader = DataLoader(ndl.data.digits(False), batch_size=100, shuffle=True, rng=0, prefetch=2)
    images, labels = next(iter(loader))
    assert images.shape == (100, 8, 8, 1)
    assert labels.shape == (100,)


# Transforms


def image(height=4, width=5, channels=2):
    return np.arange(1.0, 1 + height * width * channels).reshape(height, width, channels)


def test_flip_draws_one_number_and_flips_below_p():
    flip = RandomFlipHorizontal(p=0.6)
    np.random.seed(3)
    found = [flip(image()) for _ in range(20)]
    np.random.seed(3)
    for result in found:
        np.testing.assert_array_equal(result, image()[:, ::-1] if np.random.rand() < 0.6 else image())
    assert len({result.tobytes() for result in found}) == 2


def test_flip_at_its_ends():
    for _ in range(10):
        np.testing.assert_array_equal(RandomFlipHorizontal(0)(image()), image())
        np.testing.assert_array_equal(RandomFlipHorizontal(1)(image()), image()[:, ::-1])


def moved(img, down, right):
    """`img` moved pixel by pixel."""
    out = np.zeros_like(img)
    height, width, _ = img.shape
    for i in range(height):
        for j in range(width):
            if 0 <= i + down < height and 0 <= j + right < width:
                out[i, j] = img[i + down, j + right]
    return out


@pytest.mark.parametrize("padding", [0, 1, 3, 8])
def test_crop_draws_both_shifts_at_once(padding):
    crop = RandomCrop(padding)
    np.random.seed(3)
    found = [crop(image()) for _ in range(20)]
    np.random.seed(3)
    for result in found:
        shifts = np.random.randint(low=-padding, high=padding + 1, size=2)
        np.testing.assert_array_equal(result, moved(image(), *shifts))


def test_crop_reaches_every_shift():
    rng = np.random.default_rng(0)
    crop = RandomCrop(padding=1, rng=rng)
    expected = {moved(image(), i, j).tobytes() for i in (-1, 0, 1) for j in (-1, 0, 1)}
    assert {crop(image()).tobytes() for _ in range(200)} == expected


def test_transforms_with_a_generator_leave_the_global_state_alone():
    np.random.seed(7)
    for transform in (
        RandomCrop(rng=np.random.default_rng(0)),
        RandomFlipHorizontal(rng=np.random.default_rng(0)),
    ):
        transform(image())
    drawn = np.random.rand()
    np.random.seed(7)
    assert drawn == np.random.rand()


def test_transforms_keep_the_dtype():
    for transform in (RandomCrop(2), RandomFlipHorizontal(1)):
        assert transform(image().astype("uint8")).dtype == np.uint8


@pytest.mark.parametrize("transform", [RandomCrop(), RandomFlipHorizontal()])
def test_transforms_refuse_what_is_no_image(transform):
    with pytest.raises(ValueError, match=r"needs an image \(height, width, channels\), got shape \(784,\)"):
        transform(np.zeros(784))


def test_transforms_refuse_their_arguments():
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5"):
        RandomFlipHorizontal(1.5)
    with pytest.raises(ValueError, match="at least 0, got -1"):
        RandomCrop(-1)


@pytest.mark.parametrize("transform", [RandomCrop, RandomFlipHorizontal])
def test_a_seed_as_the_rng_of_a_transform(transform):
    img = np.random.default_rng(1).random((5, 6, 1))
    for seed in (0, 5):
        ours, expected = transform(rng=seed), transform(rng=np.random.default_rng(seed))
        for _ in range(5):
            np.testing.assert_array_equal(ours(img), expected(img))
    with pytest.raises(TypeError, match=r"rng: needs a numpy\.random\.Generator, a seed .* got list"):
        transform(rng=[1])


class Darker(Transform):
    """Changes the image that it is given."""

    def __call__(self, x):
        x *= 0.5
        return x


@pytest.mark.parametrize("index", [0, -1, slice(0, 2), [0, 2]])
def test_items_share_no_memory_with_their_dataset(index):
    values, labels = np.ones((3, 2, 2, 1), "float32"), np.arange(3)
    for dataset in (
        NDArrayDataset(values, labels),
        ImageDataset(values, labels),
        ImageDataset(values, labels, [Darker()]),
    ):
        image, label = dataset[index]
        image += 100
        label += 100
        np.testing.assert_array_equal(values, np.ones((3, 2, 2, 1)))
        np.testing.assert_array_equal(labels, np.arange(3))


def test_the_text_of_data():
    dataset = ndl.data.NDArrayDataset(np.zeros((1442, 2)))
    assert repr(dataset) == "NDArrayDataset(1,442 items)"
    loader = ndl.data.DataLoader(dataset, 32, shuffle=True)
    assert repr(loader) == "DataLoader(NDArrayDataset(1,442 items), shuffled): 46 batches of 32"
