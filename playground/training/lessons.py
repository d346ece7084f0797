"""Lessons: a page set up for one question, and answers to choose from before you see."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LESSONS", "Lesson"]


class Lesson(NamedTuple):
    """A question about a network that is ready to play.

    Attributes
    ----------
    title, question : str
    predictions : list of tuple of str
        A choice, and what to tell whoever made it, once the network has shown the answer. The first choice
        is right.
    epochs : int
        After so many epochs everybody can see the answer. A training that stands still shows it, too.
    settings : dict of str to str
        As in the page's address.
    """

    title: str
    question: str
    predictions: list[tuple[str, str]]
    epochs: int
    settings: dict[str, str]


LESSONS = {
    "straight-line": Lesson(
        "One straight line",
        "The classes sit in opposite corners, and there is no hidden layer. Can this network learn them?",
        [
            (
                "No",
                "Without a hidden layer the boundary is one straight line, and no line parts these corners. "
                "Add a layer of four neurons, and the network learns them.",
            ),
            (
                "Yes, after some time",
                "However long you play, about three in ten test points stay wrong: without a hidden layer, "
                "the boundary is a straight line. Add a layer of four neurons, and the network learns them.",
            ),
            (
                "Yes, with a higher rate",
                "A higher rate only lets the line swing faster, and no straight line parts these corners. "
                "Add a layer of four neurons, and the network learns them.",
            ),
        ],
        60,
        {
            "dataset": "xor",
            "hidden": "",
            "hide": "activation",
        },
    ),
    "features-or-depth": Lesson(
        "Inputs instead of layers",
        "Again no hidden layer, but the network sees the squares of x₁ and x₂. Can it learn the circle?",
        [
            (
                "Yes",
                "On a circle, x₁² + x₂² is constant: in terms of the squares, that is a straight line. Good "
                "inputs can replace a layer.",
            ),
            (
                "No",
                "The boundary is a straight line in terms of the squares, and x₁² + x₂² = r² is a circle. "
                "Good inputs can replace a layer.",
            ),
        ],
        30,
        {
            "dataset": "circle",
            "hidden": "",
            "inputs": "x1**2,x2**2",
            "initialisation": "zeros",
            "learning_rate": "0.003",
        },
    ),
    "noise": Lesson(
        "Learning the noise",
        "Many labels are wrong, and there are few points. As the training loss falls, what does the test "
        "loss do?",
        [
            (
                "It falls, then it rises",
                "At first the network learns the rule, and then it learns the wrong labels by heart. That is "
                "overfitting. Try L2 with a penalty rate of 0.03, or more points.",
            ),
            (
                "It falls, too",
                "So it does at first, while the network learns the rule. Then the network learns the wrong "
                "labels by heart, and that costs it on new points: overfitting. Try L2 with a penalty rate "
                "of 0.03, or more points.",
            ),
            (
                "It stays where it is",
                "Look at the dashed curve: it falls while the network learns the rule, and rises when the "
                "network learns wrong labels by heart. That is overfitting. Try L2 with a penalty rate of "
                "0.03, or more points.",
            ),
        ],
        400,
        {
            "dataset": "circle",
            "noise": "0.35",
            "points": "100",
            "train_share": "0.4",
            "hidden": "8-8",
            "learning_rate": "0.1",
            "test_points": "on",
        },
    ),
    "dead-relu": Lesson(
        "Units that die",
        "ReLU units and a learning rate of 1. Step a few epochs: why does the network stop learning?",
        [
            (
                "Its units are 0 everywhere",
                "A long step threw them to where they are 0 for every point. There their gradient is 0 as "
                "well, so they never come back. Choose a rate of 0.03 and reset.",
            ),
            (
                "It has found the minimum",
                "Then the loss would be low. Point at the two neurons of layer 2: they are 0 for every "
                "point, and so is their gradient. Choose a rate of 0.03 and reset.",
            ),
            (
                "The rate is too small",
                "It is too large: one long step threw the units to where they are 0 for every point, and "
                "there their gradient is 0. Choose a rate of 0.03 and reset.",
            ),
        ],
        15,
        {
            "dataset": "circle",
            "activation": "relu",
            "learning_rate": "1",
            "seed": "2",
            "weights_seed": "2",
        },
    ),
    "large-rate": Lesson(
        "Too large a step",
        "The network is to learn a number for each point, with a learning rate of 1. What will the loss do?",
        [
            (
                "It grows without bound",
                "Each step overshoots the minimum and lands farther away than it was, until the numbers "
                "overflow. Choose a rate of 0.03 and reset.",
            ),
            (
                "It falls fast",
                "Longer steps are faster only up to a point. Here each one overshoots the minimum and lands "
                "farther away than it was. Choose a rate of 0.03 and reset.",
            ),
            (
                "It swings around the minimum",
                "It swings, but each swing is larger than the last one, until the numbers overflow. Choose a "
                "rate of 0.03 and reset.",
            ),
        ],
        20,
        {
            "dataset": "plane",
            "hidden": "",
            "learning_rate": "1",
            "batch_size": "250",
            "pace": "10",
            "log_loss": "on",
        },
    ),
    "zeros": Lesson(
        "All neurons alike",
        "All weights begin at 0. After some epochs, how do the four neurons of the first layer differ?",
        [
            (
                "Not at all",
                "Equal neurons get equal gradients, so they stay equal for ever. That is why first weights "
                "are drawn at random. Choose Glorot under More.",
            ),
            (
                "A little",
                "Look at their links: they are equal to the last digit, because equal neurons get equal "
                "gradients. That is why first weights are drawn at random. Choose Glorot under More.",
            ),
            (
                "Each finds its own task",
                "They can't: equal neurons get equal gradients, and so they stay equal. That is why first "
                "weights are drawn at random. Choose Glorot under More.",
            ),
        ],
        10,
        {
            "dataset": "circle",
            "initialisation": "zeros",
            "activation": "sigmoid",
            "hidden": "4",
        },
    ),
    "penalty": Lesson(
        "A penalty that tidies up",
        "Seven inputs, no hidden layer, and an L1 penalty. Which inputs keep a weight worth mentioning?",
        [
            (
                "The two squares",
                "Only they help with the circle. L1 pulls on every weight with the same force, so the "
                "weights that help little end at 0.",
            ),
            (
                "All seven, a little",
                "L2 would leave a little of all. L1 pulls on small weights as hard as on large ones, so the "
                "weights that help little end at 0: look at the links.",
            ),
            (
                "x₁ and x₂",
                "The circle is the same on both sides, so x₁ and x₂ by themselves tell nothing. The squares "
                "do: look at the links. L1 has pulled all others to 0.",
            ),
        ],
        150,
        {
            "dataset": "circle",
            "hidden": "",
            "inputs": "x1,x2,x1**2,x2**2,x1*x2,sin(x1),sin(x2)",
            "regularisation": "l1",
            "regularisation_rate": "0.03",
        },
    ),
    "deep-sigmoid": Lesson(
        "A gradient that fades",
        "Six layers of sigmoid neurons. How well will they have learned the circle after 100 epochs?",
        [
            (
                "Hardly at all",
                "Each sigmoid passes on at most a quarter of the gradient, so little arrives at the first "
                "layers: see Look inside, Histograms. Choose tanh, and they learn.",
            ),
            (
                "Very well: it is deep",
                "Depth only helps if the gradient gets through, and each sigmoid passes on at most a quarter "
                "of it: see Look inside, Histograms. Choose tanh, and they learn.",
            ),
        ],
        100,
        {
            "dataset": "circle",
            "activation": "sigmoid",
            "hidden": "4-4-4-4-4-4",
        },
    ),
}
