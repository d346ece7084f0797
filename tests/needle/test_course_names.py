"""The names, signatures and habits that the files of the CMU 10-414/714 course and of its students rely on.

We may add parameters at the end; those of the course keep their names, order and defaults.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import needle as ndl
from needle import autograd, backend_ndarray, backend_selection, data, init, nn, ops, optim
from needle.apps import mlp_resnet, models, simple_ml
from needle.autograd import Tensor
from needle.backend_ndarray import NDArray, ndarray

nd_only = pytest.mark.skipif(ndl.BACKEND != "nd", reason="is about our own arrays")

SIGNATURES = {
    ops: """
        add(a, b) add_scalar(a, scalar) multiply(a, b) mul_scalar(a, scalar) power(a, b)
        power_scalar(a, scalar) divide(a, b) divide_scalar(a, scalar) transpose(a, axes=None)
        reshape(a, shape) broadcast_to(a, shape) summation(a, axes=None) matmul(a, b) negate(a) log(a)
        exp(a) relu(a) logsoftmax(a) logsumexp(a, axes=None) make_tuple(*a) tuple_get_item(value, index)
        fused_add_scalars(x, c0, c1) tanh(a) stack(args, axis) split(a, axis) flip(a, axes)
        dilate(a, axes, dilation) undilate(a, axes, dilation) conv(a, b, stride=1, padding=1) EWiseAdd()
        AddScalar(scalar) EWiseMul() MulScalar(scalar) EWisePow() PowerScalar(scalar) EWiseDiv()
        DivScalar(scalar) Transpose(axes=None) Reshape(shape) BroadcastTo(shape) Summation(axes=None)
        MatMul() Negate() Log() Exp() ReLU() LogSoftmax() LogSumExp(axes=None) MakeTensorTuple()
        TupleGetItem(index) FusedAddScalars(c0, c1) Tanh() Stack(axis) Split(axis) Flip(axes=None)
        Dilate(axes, dilation) UnDilate(axes, dilation) Conv(stride=1, padding=0) permute(a, axes)
    """,
    autograd: """
        Tensor(array, *, device=None, dtype=None, requires_grad=True)
        compute_gradient_of_variables(output_tensor, out_grad) find_topo_sort(node_list)
        sum_node_list(node_list)
    """,
    init: """
        rand(*shape, low=0., high=1., device=None, dtype="float32", requires_grad=False)
        randn(*shape, mean=0., std=1., device=None, dtype="float32", requires_grad=False)
        constant(*shape, c=1., device=None, dtype="float32", requires_grad=False)
        ones(*shape, device=None, dtype="float32", requires_grad=False)
        zeros(*shape, device=None, dtype="float32", requires_grad=False)
        randb(*shape, p=.5, device=None, dtype="bool", requires_grad=False)
        one_hot(n, i, device=None, dtype="float32", requires_grad=False)
        ones_like(array, *, device=None, requires_grad=False)
        zeros_like(array, *, device=None, requires_grad=False) xavier_uniform(fan_in, fan_out, gain=1.)
        xavier_normal(fan_in, fan_out, gain=1.)
        kaiming_uniform(fan_in, fan_out, nonlinearity="relu", *, shape=None)
        kaiming_normal(fan_in, fan_out, nonlinearity="relu")
    """,
    nn: """
        Parameter(array) Module() Identity() Flatten() ReLU() Sequential(*modules) SoftmaxLoss()
        Residual(fn) Linear(in_features, out_features, bias=True, device=None, dtype="float32")
        BatchNorm1d(dim, eps=1e-5, momentum=.1, device=None, dtype="float32")
        LayerNorm1d(dim, eps=1e-5, device=None, dtype="float32") Dropout(p=.5)
        BatchNorm2d(dim, eps=1e-5, momentum=.1, device=None, dtype="float32") Sigmoid()
        Conv(in_channels, out_channels, kernel_size, stride=1, bias=True, device=None, dtype="float32")
        RNNCell(input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype="float32")
        LSTMCell(input_size, hidden_size, bias=True, device=None, dtype="float32")
        RNN(input_size, hidden_size, num_layers=1, bias=True, nonlinearity="tanh", device=None,
            dtype="float32")
        LSTM(input_size, hidden_size, num_layers=1, bias=True, device=None, dtype="float32")
        Embedding(num_embeddings, embedding_dim, device=None, dtype="float32")
        MultiHeadAttention(*, dropout=0., causal=False, device=None, dtype="float32")
        AttentionLayer(q_features, num_head, dim_head, *, k_features=None, v_features=None,
                       out_features=None, dropout=0., causal=True, device=None, dtype="float32")
        TransformerLayer(q_features, num_head, dim_head, hidden_size, *, dropout=0., causal=True,
                         device=None, dtype="float32")
        Transformer(embedding_size, hidden_size, num_layers, *, num_head=8, dim_head=32, dropout=0.,
                    causal=True, device=None, dtype="float32", batch_first=False, sequence_len=2048)
    """,
    optim: """
        Optimizer(params) SGD(params, lr=.01, momentum=0., weight_decay=0.)
        Adam(params, lr=.01, beta1=.9, beta2=.999, eps=1e-8, weight_decay=0.)
    """,
    data: """
        Dataset(transforms=None) DataLoader(dataset, batch_size=1, shuffle=False) Transform()
        RandomFlipHorizontal(p=.5) RandomCrop(padding=3)
        MNISTDataset(image_filename, label_filename, transforms=None) NDArrayDataset(*arrays)
        CIFAR10Dataset(base_folder, train, p=.5, transforms=None) Dictionary()
        Corpus(base_dir, max_lines=None) batchify(data, batch_size, device=None, dtype=None)
        get_batch(batches, i, bptt, device=None, dtype=None)
    """,
    backend_ndarray: """
        BackendDevice(name, mod) NDArray(other, device=None) cpu() cuda() cpu_numpy() default_device()
        all_devices()
    """,
    ndarray: """
        BackendDevice(name, mod) NDArray(other, device=None) cpu() cuda() cpu_numpy() default_device()
        all_devices() array(a, dtype="float32", device=None) empty(shape, dtype="float32", device=None)
        full(shape, fill_value, dtype="float32", device=None) broadcast_to(array, new_shape)
        reshape(array, new_shape) maximum(a, b) log(a) exp(a) tanh(a)
        sum(a, axis=None, keepdims=False) flip(a, axes)
    """,
    NDArray: """
        make(shape, strides=None, device=None, handle=None, offset=0) compact_strides(shape)
        fill(self, value) to(self, device) numpy(self) is_compact(self) compact(self)
        as_strided(self, shape, strides) reshape(self, new_shape) permute(self, new_axes)
        broadcast_to(self, new_shape) process_slice(self, sl, dim)
        ewise_or_scalar(self, other, ewise_func, scalar_func) maximum(self, other) log(self) exp(self)
        tanh(self) sum(self, axis=None, keepdims=False) max(self, axis=None, keepdims=False)
        flip(self, axes) pad(self, axes)
    """,
    Tensor: """
        backward(self, out_grad=None) numpy(self) detach(self) realize_cached_data(self) is_leaf(self)
        make_const(data, *, requires_grad=False) make_from_op(op, inputs) matmul(self, other)
        sum(self, axes=None) broadcast_to(self, shape) reshape(self, shape) transpose(self, axes=None)
    """,
    nn.Module: "parameters(self) _children(self) eval(self) train(self)",
    optim.Optimizer: "step(self) reset_grad(self) clip_grad_norm(self, max_norm=0.25)",
    autograd.Op: """
        compute(self, *args) gradient(self, out_grad, node) gradient_as_tuple(self, out_grad, node)
    """,
    simple_ml: """
        parse_mnist(image_filename, label_filename) softmax_loss(Z, y_one_hot)
        nn_epoch(X, y, W1, W2, lr=.1, batch=100) loss_err(h, y) epoch_general_cifar10(dataloader, model)
        train_cifar10(model, dataloader, n_epochs=1) evaluate_cifar10(model, dataloader)
        epoch_general_ptb(data, model, seq_len=40) train_ptb(model, data, seq_len=40, n_epochs=1)
        evaluate_ptb(model, data, seq_len=40)
    """,
    mlp_resnet: """
        ResidualBlock(dim, hidden_dim, norm=nn.BatchNorm1d, drop_prob=.1)
        MLPResNet(dim, hidden_dim=100, num_blocks=3, num_classes=10, norm=nn.BatchNorm1d, drop_prob=.1)
        epoch(dataloader, model, opt=None)
        train_mnist(batch_size=100, epochs=10, optimizer=optim.Adam, lr=1e-3, weight_decay=1e-3,
                    hidden_dim=100, data_dir="data")
    """,
    models: """
        ResNet9(device=None, dtype="float32")
        LanguageModel(embedding_size, output_size, hidden_size, num_layers=1, seq_model="rnn",
                      seq_len=40, device=None, dtype="float32")
    """,
}


def signatures() -> list:
    found = []
    for owner, text in SIGNATURES.items():
        for call in text.replace(") ", ")\n").split(")\n"):
            if call.strip():
                name, parameters = call.strip().removesuffix(")").split("(", 1)
                short = owner.__name__.removeprefix("needle.")
                found.append(pytest.param(owner, name, parameters, id=f"{short}.{name}"))
    return found


@pytest.mark.parametrize(("owner", "name", "parameters"), signatures())
def test_a_signature_begins_as_the_courses(owner, name, parameters):
    course = inspect.signature(eval(f"lambda {' '.join(parameters.split())}: None")).parameters
    ours = inspect.signature(getattr(owner, name)).parameters

    def by_position(parameters):
        kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        return [p.name for p in parameters.values() if p.kind in kinds]

    def any_number(parameters):
        return any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values())

    method = "self" in course
    names = by_position(course)[method:]
    assert by_position(ours)[method:][: len(names)] == names
    assert any_number(ours) >= any_number(course)
    for p in course.values():
        if p.kind is not inspect.Parameter.VAR_POSITIONAL and p.default is not p.empty:
            assert ours[p.name].default == p.default
    new = [p for p in list(ours.values())[method:] if p.name not in course]
    new = [p for p in new if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    assert all(p.default is not p.empty for p in new)


# Names

NAMES = {
    *{
        "Tensor",
        "TensorTuple",
        "NDArray",
        "array_api",
        "BACKEND",
        "gradients",
        "no_grad",
        "lazy",
        "gradcheck",
    },
    *{
        "cpu",
        "cuda",
        "cpu_numpy",
        "default_device",
        "all_devices",
        "ones",
        "zeros",
        "ones_like",
        "zeros_like",
    },
    *{"autograd", "ops", "init", "nn", "optim", "data", "backend_ndarray", "backend_selection"},
}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_name_of_needle(name):
    assert name in ndl.__all__
    assert hasattr(ndl, name)


def test_all_operators_are_names_of_needle():
    names = [name for name, _ in inspect.getmembers(ops, inspect.isfunction) if name in ops.__all__]
    assert set(names) <= set(ndl.__all__)
    assert all(getattr(ndl, name) is getattr(ops, name) for name in names)


def test_names_of_autograd():
    assert autograd.LAZY_MODE is False
    assert type(autograd.TENSOR_COUNTER) is int
    assert issubclass(autograd.TensorOp, autograd.Op)
    assert issubclass(autograd.TensorTupleOp, autograd.Op)
    assert issubclass(autograd.Tensor, autograd.Value)
    assert issubclass(autograd.TensorTuple, autograd.Value)
    x = Tensor([1.0, 2.0])
    y = x * 2
    assert isinstance(y.op, ops.MulScalar)
    assert list(y.inputs) == [x]
    assert (y.detach().op, y.detach().inputs) == (None, [])
    assert (y.num_outputs, y.requires_grad, x.is_leaf(), y.is_leaf()) == (1, True, True, False)
    assert y.cached_data is y.realize_cached_data()
    pair = ops.make_tuple(x, y)
    assert isinstance(pair, autograd.TensorTuple)
    assert (len(pair), len(pair.tuple()), len((pair + pair).detach())) == (2, 2, 2)
    assert pair[1].numpy().tolist() == [2, 4]


def test_names_that_are_known_in_several_places():
    assert nn.Tensor is ops.Tensor is Tensor
    assert autograd.cpu is ndl.cpu
    assert autograd.array_api is ndl.array_api
    assert ndl.data.ptb_dataset.Corpus is data.Corpus
    assert optim.SGD.__name__ == "SGD"


@nd_only
def test_names_of_the_arrays():
    assert ndarray.prod((2, 3, 4)) == 24
    assert [repr(device) for device in (ndl.cpu(), ndl.cuda(), ndl.cpu_numpy())] == [
        *("cpu()", "cuda()", "cpu_numpy()")
    ]
    array = NDArray([[1.0, 2.0]])
    for name in ("shape", "strides", "device", "dtype", "ndim", "size", "flat", "_handle"):
        assert hasattr(array, name)
    device = ndl.cpu()
    for name in ("enabled", "randn", "rand", "one_hot", "empty", "full", "zeros", "ones"):
        assert callable(getattr(device, name))
    assert backend_selection.BACKEND == ndl.BACKEND == "nd"


@nd_only
@pytest.mark.parametrize("device", [ndl.cpu(), ndl.cpu_numpy()], ids=str)
def test_names_of_a_devices_module(device):
    assert device.mod.__device_name__
    assert device.mod.__tile_size__ > 0
    storage = device.mod.Array(3)
    assert storage.size == 3
    assert type(storage.ptr()) is int
    names = ["from_numpy", "to_numpy", "fill", "compact", "ewise_setitem", "scalar_setitem"]
    names += ["matmul", "reduce_sum", "reduce_max"]
    names += [f"{kind}_{name}" for kind in ("ewise", "scalar") for name in ("add", "mul", "div", "maximum")]
    names += ["scalar_power", "ewise_eq", "scalar_eq", "ewise_ge", "scalar_ge"]
    names += ["ewise_log", "ewise_exp", "ewise_tanh"]
    for name in names:
        assert callable(getattr(device.mod, name))


# Habits


def test_a_parameter_is_there_or_none():
    assert nn.Linear(2, 3).bias
    assert not nn.Linear(2, 3, bias=False).bias
    with pytest.raises(ValueError, match=r"(?s)truth.*(any|all|None)"):
        bool(Tensor([1.0, 2.0]))


@nd_only
def test_keywords_of_the_movements():
    array = NDArray(np.arange(6).reshape(2, 3))
    assert array.reshape(new_shape=(3, 2)).shape == (3, 2)
    assert array.permute(new_axes=(1, 0)).shape == (3, 2)
    assert array.broadcast_to(new_shape=(4, 2, 3)).shape == (4, 2, 3)


def test_keywords_of_init():
    assert init.zeros_like(array=Tensor([1.0, 2.0])).numpy().tolist() == [0, 0]
    assert init.ones_like(array=Tensor([1.0, 2.0])).numpy().tolist() == [1, 1]


def test_next_of_a_loader():
    loader = data.DataLoader(data.NDArrayDataset(np.arange(4)), batch_size=2)
    (first,) = next(iter(loader))
    assert first.numpy().tolist() == [0, 1]
    iter(loader)
    batches = [next(loader)[0].numpy().tolist() for _ in range(2)]
    assert batches == [[0, 1], [2, 3]]
    with pytest.raises(StopIteration):
        next(loader)


class Loader:
    """One batch of images; it notes the next random number when it is asked for it."""

    def __iter__(self):
        self.drawn = np.random.rand()
        yield Tensor(np.ones((2, 3))), Tensor([0, 1])


@pytest.mark.parametrize("run", [simple_ml.train_cifar10, simple_ml.evaluate_cifar10])
def test_cifar10_begins_with_the_same_seed(run):
    loader = Loader()
    np.random.seed(0)
    run(nn.Linear(3, 2), loader)
    assert loader.drawn == np.random.RandomState(4).rand()


def test_the_classes_of_networks():
    assert sum(p.size for p in models.ResNet9().parameters()) == 431_946
    model = models.LanguageModel(8, 5, 6, seq_model="transformer", seq_len=4)
    assert isinstance(model.model, nn.Transformer)
    assert model.linear.weight.shape == (8, 5)
    logits, h = model(Tensor(np.zeros((4, 2))))
    assert (logits.shape, h.shape) == ((8, 5), (4, 2, 8))


# Order and results that are pinned


def test_backward_replaces_the_gradient_and_keeps_it_connected():
    x = Tensor([3.0])
    assert x.grad is None
    for _ in range(2):
        (x * x).backward()
        assert x.grad.numpy() == 6
    x.grad.backward()
    assert x.grad.numpy() == 2


def test_subtraction_is_negation_then_addition():
    a, b = Tensor([1.0]), Tensor([2.0])
    difference = a - b
    assert isinstance(difference.op, ops.EWiseAdd)
    assert isinstance(difference.inputs[1].op, ops.Negate)
    order = autograd.find_topo_sort([difference])
    assert order == [a, b, difference.inputs[1], difference]


@nd_only
def test_float32_is_the_default_and_float64_is_used_when_asked_for():
    assert Tensor(np.ones(2)).dtype == "float32"
    assert Tensor(np.ones(2), dtype="float64").dtype == "float64"
    assert Tensor([1.0]).sum().shape == ()


def drawn(make, *shapes):
    """The parameters of a new module, and uniform numbers of these shapes from the same seed."""
    np.random.seed(1)
    found = [p.numpy() for p in make().parameters()]
    np.random.seed(1)
    return zip(found, [np.random.rand(*shape) for shape in shapes], strict=True)


@pytest.mark.parametrize(
    ("make", "bounds", "shapes"),
    [
        (lambda: nn.Linear(3, 4), [np.sqrt(6 / 3), np.sqrt(6 / 4)], [(3, 4), (1, 4)]),
        (lambda: nn.Conv(2, 4, 3), [np.sqrt(6 / 18), np.sqrt(1 / 18)], [(3, 3, 2, 4), (4,)]),
        (lambda: nn.RNNCell(3, 4), [0.5] * 4, [(3, 4), (4, 4), (4,), (4,)]),
        (lambda: nn.LSTMCell(3, 4), [0.5] * 4, [(3, 16), (4, 16), (16,), (16,)]),
    ],
    ids=["Linear", "Conv", "RNNCell", "LSTMCell"],
)
def test_initial_weights_are_drawn_in_the_textbooks_order(make, bounds, shapes):
    for (found, uniform), bound in zip(drawn(make, *shapes), bounds, strict=True):
        np.testing.assert_allclose(found, uniform * 2 * bound - bound, rtol=1e-5, atol=1e-6)


def test_what_dropout_and_the_normalizations_compute():
    x = np.random.randn(4, 3)
    np.random.seed(1)
    out = nn.Dropout(0.25)(Tensor(x))
    np.random.seed(1)
    np.testing.assert_allclose(out.numpy(), x * (np.random.rand(4, 3) <= 0.75) / 0.75, rtol=1e-5)
    norm = nn.BatchNorm1d(3, momentum=0.3)
    norm(Tensor(x))
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.3 * x.mean(0), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(norm.running_var.numpy(), 0.7 + 0.3 * x.var(0), rtol=1e-4)


def test_steps_of_the_optimisers():
    def after(optimizer, gradients):
        p = nn.Parameter([1.0])
        opt = optimizer([p])
        for g in gradients:
            p.grad = Tensor([g])
            opt.step()
        return p.numpy().item()

    sgd = after(lambda ps: optim.SGD(ps, 0.1, momentum=0.9, weight_decay=0.5), [2.0, 1.0])
    p, u = 1.0, 0.0
    for g in (2.0, 1.0):
        u = 0.9 * u + 0.1 * (g + 0.5 * p)
        p -= 0.1 * u
    np.testing.assert_allclose(sgd, p, rtol=1e-6)

    adam = after(lambda ps: optim.Adam(ps, 0.1, eps=0.1, weight_decay=0.5), [2.0, 1.0])
    p, m, v = 1.0, 0.0, 0.0
    for t, g in enumerate((2.0, 1.0), start=1):
        g += 0.5 * p
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        p -= 0.1 * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 0.1)
    np.testing.assert_allclose(adam, p, rtol=1e-5)


def test_one_draw_for_a_crop_a_flip_and_a_pass():
    image = np.random.rand(6, 6, 1)
    np.random.seed(1)
    cropped, flipped = data.RandomCrop(2)(image), data.RandomFlipHorizontal(0.5)(image)
    after = np.random.rand()
    np.random.seed(1)
    down, right = np.random.randint(-2, 3, size=2)
    padded = np.pad(image, ((2, 2), (2, 2), (0, 0)))
    np.testing.assert_array_equal(cropped, padded[2 + down : 8 + down, 2 + right : 8 + right])
    np.testing.assert_array_equal(flipped, image[:, ::-1] if np.random.rand() < 0.5 else image)
    assert np.random.rand() == after
    np.random.seed(1)
    loader = data.DataLoader(data.NDArrayDataset(np.arange(5)), batch_size=5, shuffle=True)
    ((batch,),) = loader
    np.random.seed(1)
    np.testing.assert_array_equal(batch.numpy(), np.random.permutation(5))


def test_an_rnn_without_a_state_still_multiplies_by_its_weights():
    rnn = nn.RNN(3, 4)
    rnn(Tensor(np.ones((1, 2, 3))))[0].sum().backward()
    weight = rnn.rnn_cells[0].W_hh
    np.testing.assert_array_equal(weight.grad.numpy(), np.zeros((4, 4)))


def test_logsumexps_gradient_is_exact_where_numbers_are_large():
    x = Tensor([[1e9, 1e9, 0.0]])
    ops.logsumexp(x, axes=(1,)).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[0.5, 0.5, 0]])
