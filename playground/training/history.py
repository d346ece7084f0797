"""What is remembered of the epochs, thinned so that it stays small."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Thinned"]

T = TypeVar("T")


class Thinned(Generic[T]):
    """Values at epochs, evenly spread: once there are more than `capacity`, every second one goes.

    The newest value is always there besides.

    Parameters
    ----------
    capacity : int
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._stride = 1
        self._kept: dict[int, T] = {}
        self._newest: tuple[int, T] | None = None

    def __copy__(self) -> Thinned[T]:
        other = Thinned[T](self.capacity)
        other._stride, other._kept, other._newest = self._stride, dict(self._kept), self._newest
        return other

    def wants(self, epoch: int) -> bool:
        """Whether a value at this epoch would stay."""
        return epoch % self._stride == 0

    def add(self, epoch: int, value: T) -> None:
        """Note a value; epochs come in order."""
        self._newest = (epoch, value)
        if not self.wants(epoch):
            return
        self._kept[epoch] = value
        if len(self._kept) > self.capacity:
            self._stride *= 2
            self._kept = {at: kept for at, kept in self._kept.items() if self.wants(at)}

    def items(self) -> list[tuple[int, T]]:
        """Epochs and their values, in order."""
        newest = dict([self._newest]) if self._newest else {}
        return list({**self._kept, **newest}.items())

    def nearest(self, epoch: int) -> T:
        """The value nearest to an epoch; KeyError if there is none."""
        entries = self.items()
        if not entries:
            raise KeyError(epoch)
        return min(entries, key=lambda entry: abs(entry[0] - epoch))[1]

    def cut(self, epoch: int) -> None:
        """Forget what came after an epoch."""
        entries = [(at, value) for at, value in self.items() if at <= epoch]
        self._kept = {at: value for at, value in entries if self.wants(at)}
        self._newest = entries[-1] if entries else None
