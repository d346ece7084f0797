"""All trainings of this process, in one thread, and the pages that watch them.

A thread for each training would not be faster, since only one thread at a time can run Python; it would only
be unfair. Here each run gets its turn: it learns for a moment, and sends a picture if its page can take one.
What people do comes before all turns, so a click takes effect within one turn, however many play. The more
play, the shorter the turns, so that each still sends several pictures a second.

A page asks for each picture, when it has painted the one before. So pictures never queue. A run does not
learn far ahead of what its page has shown: where people's browsers and this process share a machine,
learning makes room for painting, and a page that is not seen costs little.

Nothing of a run lies on a disk. Once a second, a page gets a backup of what has changed. Should this process
end, the page hands its backup to the next process, and the run goes on from there.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
import math
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ..results.as_python import TooManyChanges
from ..training.features import FeatureError
from ..training.hints import hint
from ..training.settings import FIELDS, Settings
from ..training.trainer import Trainer
from . import commands, messages

__all__ = ["Run", "Runs", "Viewer"]

#: Seconds of a turn, at most; and of a round, in which everybody who plays gets a turn. From twenty on, turns
#: get no shorter, but rounds longer: a picture takes 2 ms, and something must have been learned in between.
TURN = 0.012
ROUND = 0.1
SHORTEST_TURN = 0.005
#: Seconds, at most, for which a step learns at once, and a pause ends its epoch. The rest comes in turns.
AT_ONCE = 0.1
#: Seconds between two pictures of a run, for each run that plays: one page must not take what others need.
#: And the part of the time that a run's pictures may take: where one takes long, they come less often.
PICTURE = 0.0065
PICTURES = 0.6
#: Turns that a run takes before its page asks for the next picture. After so many seconds it takes one all
#: the same.
AHEAD = 3
UNSEEN = 0.25
#: Seconds for which a run waits for its page to come back, and how many runs wait at most.
PATIENCE = 300.0
MOST_WAITING = 30
#: Seconds between two backups of a run, at least; and the part of the time that all backups may take: where
#: many play with thousands of points of their own, a backup takes long, and they come less often.
BACKUP = 1.0
BACKUPS = 0.1
#: Seconds from one look at what the network says about itself to the next.
HINT_PERIOD = 0.5
#: Seconds from one network that is traced to the next; until then it learns without being compiled.
COMPILE_PERIOD = 0.3
#: Runs at the same time.
MOST = 200
#: Seconds between two looks at which runs are forgotten.
LONGEST_REST = 10.0

_log = logging.getLogger(__name__)
_thread_time = getattr(time, "thread_time", time.perf_counter)  # a browser does not tell it


class Viewer:
    """A page that shows a run.

    Parameters
    ----------
    send : callable
        Takes a message (bytes) from any thread, and does not wait. With the argument `latest`, the message
        takes the place of an unsent one of the same kind.
    replaced : callable
        Called when the same page has come back by another line, and this one has nothing to show any more.
    """

    def __init__(self, send: Callable[..., None], replaced: Callable[[], object] = lambda: None) -> None:
        self.send = send
        self.replaced = replaced
        self.is_gone = False
        self.questions: set[int | str] = set()  # that wait for an answer
        self.is_ready = False  # for the next picture
        self.look: tuple[int, int] | None = None
        self.watch: tuple[str, ...] = ()


class Run:
    """A training, whether it plays, and who watches it.

    Only the thread of `Runs` touches it once it is there.

    Attributes
    ----------
    trainer : Trainer
    playing : bool
    viewer : Viewer or None
    """

    def __init__(self, settings: Settings, may_compile: Callable[[], bool] = lambda: True) -> None:
        self.id = secrets.token_urlsafe(12)
        self.token = ""  # known to the page that shows it, and to no copy of that page
        self.may_compile = may_compile
        self.trainer = Trainer(settings, may_compile=may_compile)
        self.playing = False
        self.viewer: Viewer | None = None
        self.left_at = math.inf
        self.has_news = True
        self._until: int | None = None  # the epoch at which it pauses by itself
        self._next_epoch = 0.0  # when it is due, at a slow pace
        self._shown_at = 0.0  # when the last picture was sent
        self._picture_took = 0.0  # seconds of work
        self._turns = 0  # since then
        self._turn_at = 0.0  # when the last one was
        self._asked_at = -math.inf
        self._said: str | None = None
        self._backed_up: tuple | None = None  # what the page has a backup of
        self._backed_up_at = -math.inf
        self._backup_took = 0.0  # seconds of work

    def show(self, viewer: Viewer, problems: list[str], is_lost: bool = False) -> None:
        """Show this run to a page from now on; `is_lost` says whether it looked for another one in vain."""
        if self.viewer:
            self.viewer.is_gone = True
            self.viewer.replaced()
        self.viewer = viewer
        self.left_at = math.inf
        self.token = secrets.token_urlsafe(12)
        viewer.send(messages.welcome(self.id, self.token, is_lost))
        self._backed_up = None if self.is_worth_keeping else self._to_back_up()
        self.send_scene(problems)

    def leave(self, viewer: Viewer) -> None:
        """The page is gone. The run waits for it, and does not go on meanwhile."""
        viewer.is_gone = True
        if self.viewer is viewer:
            self.viewer = None
            self.left_at = time.monotonic()

    @property
    def is_worth_keeping(self) -> bool:
        """Whether there is something that the address alone does not bring back."""
        trainer = self.trainer
        return trainer.steps > 0 or bool(trainer.changes or trainer.settings.own)

    def send_scene(self, problems: Sequence[str] = ()) -> None:
        """Tell the page what is new besides the picture."""
        self.has_news = True
        if self.viewer:
            self.viewer.send(messages.scene(self.trainer, problems), latest="scene")

    def tell(self, text: str, tone: str = "info") -> None:
        """Say something in one line."""
        if self.viewer:
            self.viewer.send(messages.pack({"kind": "notice", "text": text, "tone": tone}))

    def become(self, settings: Settings, problems: Sequence[str] = ()) -> None:
        """Go on with other settings, or begin again if they need that."""
        try:
            if not self.trainer.retune(settings):
                learned = self.trainer.epochs
                self._begin(settings)
                if learned:
                    self.tell(f"This change starts a new training. The {learned:,} epochs so far are gone.")
        except FeatureError as error:  # an input has no value at one of the points
            problems = [*problems, f"{FIELDS['inputs'].label}: {error}"]
        self.send_scene(problems)

    def play(self) -> None:
        """Go on."""
        self._begin_after_trouble()
        self.playing, self._until = not self.trainer.trouble, None
        self.has_news = True

    def step(self) -> None:
        """Learn for one epoch more. What takes long goes on in turns, as while it plays."""
        self._begin_after_trouble()
        until = (self._until or self.trainer.epochs) + 1
        self.pause()
        self.trainer.epoch(at_most=AT_ONCE)
        if self.trainer.epochs < until and not self.trainer.trouble:
            self.playing, self._until = True, until

    def pause(self) -> None:
        """Stand still."""
        self.playing, self._until = False, None
        self.has_news = True

    def rest(self) -> None:
        """Stand still at the end of the epoch, if it is near."""
        trainer = self.trainer
        if self.playing and trainer.epoch_share and not trainer.looks_back:
            trainer.epoch(at_most=AT_ONCE)
            trainer.measure()  # if the epoch isn't over yet, the page shows the losses of its middle
        self.pause()

    def reset(self, settings: Settings | None = None) -> None:
        """Begin again, perhaps with other settings."""
        self._begin(settings or self.trainer.settings)
        self.send_scene()

    def take(self, trainer: Trainer) -> None:
        """Go on with another training."""
        self.pause()
        self.trainer = trainer
        self.send_scene()

    def _begin_after_trouble(self) -> None:
        if self.trainer.trouble and self.trainer.steps:  # there is no way on from here
            self.reset()

    def _begin(self, settings: Settings) -> None:
        self.trainer = Trainer(settings, self.trainer, self.may_compile)

    @property
    def is_learning(self) -> bool:
        """Whether it goes on by itself."""
        return self.playing and self.viewer is not None

    def turn_due(self, ahead: int) -> float:
        """When it may learn, on the clock `time.monotonic`; infinity if it does not learn.

        Parameters
        ----------
        ahead : int
            Turns that it takes before its page asks for the next picture.
        """
        if not self.is_learning:
            return math.inf
        has_pace = self.trainer.settings.pace != "fastest" and self._until is None
        at = self._next_epoch if has_pace else 0.0
        return max(at, self._turn_at + UNSEEN) if self._turns >= ahead else at

    def picture_due(self, pause: float) -> float:
        """When it may send a picture; infinity if there is no news, or its page is not ready.

        Parameters
        ----------
        pause : float
            Seconds between two pictures while it plays.
        """
        if not (self.has_news and self.viewer and self.viewer.is_ready):
            return math.inf
        return self._shown_at + max(pause, self._picture_took / PICTURES) if self.playing else 0.0

    def learn(self, seconds: float) -> None:
        """Its turn: learn for a moment."""
        trainer = self.trainer
        self._turns += 1
        self._turn_at = time.monotonic()
        if self._until is not None:
            trainer.epoch(at_most=seconds)
        elif trainer.settings.pace == "fastest":
            trainer.run_for(seconds)
        else:
            epochs = trainer.epochs
            trainer.epoch(at_most=seconds)
            if trainer.epochs > epochs:
                self._next_epoch = max(self._turn_at, self._next_epoch + 1 / float(trainer.settings.pace))
        self.has_news = True
        if trainer.trouble or (self._until is not None and trainer.epochs >= self._until):
            self.pause()

    def send_picture(self) -> None:
        """Send a picture."""
        viewer = self.viewer
        if viewer:
            viewer.is_ready = self.has_news = False
            self._shown_at, self._turns = time.monotonic(), 0
            began = _thread_time()
            look = viewer.look if viewer.look and self._has_neuron(*viewer.look) else None
            picture = messages.picture(self.trainer, self.playing, self._hint(), look, viewer.watch)
            viewer.send(picture, latest="picture")
            self._picture_took = _thread_time() - began

    def backup_due(self, pause: float) -> float:
        """When its page may get a backup; infinity if the page has one of all that matters.

        Parameters
        ----------
        pause : float
            Seconds between two backups, for each second that the last one took.
        """
        if not self.viewer or self.trainer.looks_back or self._backed_up == self._to_back_up():
            return math.inf
        return self._backed_up_at + max(BACKUP, pause * self._backup_took)

    def send_backup(self) -> None:
        """Give its page a backup of the run, unless that would be too large: then the page keeps its last."""
        self._backed_up, self._backed_up_at = self._to_back_up(), time.monotonic()
        began = _thread_time()
        if self.viewer:
            with suppress(TooManyChanges):
                message = messages.backup(self.trainer if self.is_worth_keeping else None, self.playing)
                self.viewer.send(message, latest="backup")
        self._backup_took = _thread_time() - began

    def _to_back_up(self) -> tuple:
        trainer = self.trainer
        return self.playing, trainer, trainer.steps, trainer.settings, [*trainer.changes]

    def _hint(self) -> str | None:
        """What the network says about itself; while it plays, it is seldom asked."""
        if not self.playing or time.monotonic() > self._asked_at + HINT_PERIOD:
            self._asked_at = time.monotonic()
            self._said = hint(self.trainer)
        return self._said

    def _has_neuron(self, layer: int, index: int) -> bool:
        widths = [len(self.trainer.settings.inputs), *(x.neurons for x in self.trainer.settings.hidden), 1]
        return 0 <= layer < len(widths) and 0 <= index < widths[layer]


class _Share(NamedTuple):
    """What each run gets, the less the more there are: see `Run.turn_due`, `picture_due` and `backup_due`."""

    turn: float  # seconds
    ahead: int
    pause: float
    backup_pause: float


class Runs:
    """The runs of this process.

    Parameters
    ----------
    patience : float
        Seconds for which a run waits for its page to come back.
    has_thread : bool
        Whether a thread gives the turns. Without one, somebody else has to call `turn` again and again.
    picture : float
        Seconds between two pictures of a run, for each run that plays.
    """

    def __init__(self, patience: float = PATIENCE, has_thread: bool = True, picture: float = PICTURE) -> None:
        self._patience = patience
        self._picture = picture
        self._has_thread = has_thread
        self._runs: dict[str, Run] = {}
        self._wishes: deque[Callable[[], object]] = deque()
        self._long_wishes: deque[Callable[[], object]] = deque()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._compiled_at = -math.inf

    def open(
        self,
        viewer: Viewer,
        address: Mapping[str, str],
        name: str | None,
        opened: Callable[[Run | None], None],
        token: str | None = None,
    ) -> None:
        """Show a run to a page: the one of this name, or a new one for an address.

        A run that another page shows stays with that page, and this page gets a new one. Only a page that
        knows the run's token is that very page: its line broke, and the server has not noticed it yet.

        Parameters
        ----------
        viewer : Viewer
        address : mapping of str to str
            Settings, as the page's address has them.
        name : str or None
            The id of the run that the page had before.
        opened : callable
            Called with the run, or with None if there are too many.
        token : str or None
            What the page was told when the run was shown to it last.
        """

        def open_run() -> None:
            run = None
            try:
                run = self._open(viewer, address, name, token)
            finally:
                opened(run)

        self.wish(open_run, is_long=True)

    def command(
        self, run: Run, viewer: Viewer, command: Any, done: Callable[[], object] = lambda: None
    ) -> None:
        """Do what a page asks for.

        Parameters
        ----------
        run : Run
        viewer : Viewer
        command : object
            See `commands`.
        done : callable
            Called when it is done. Pass the page's next command only then: an import takes longer than
            what comes after it, and no page may pile up work.
        """
        is_act = not (isinstance(command, dict) and command.get("do") == "ready")

        def do() -> None:
            try:
                if run.viewer is viewer:
                    self._guarded(run, lambda: commands.do(run, viewer, command))
                    if is_act and run.picture_due(0.0) <= time.monotonic():
                        self._guarded(run, run.send_picture)  # who does something sees it before all turns
            finally:
                done()

        self.wish(do, is_long=isinstance(command, bytes))

    def leave(self, run: Run, viewer: Viewer) -> None:
        """A page is gone."""
        self.wish(lambda: run.leave(viewer))

    def wish(self, wish: Callable[[], object], is_long: bool = False) -> None:
        """Do something soon, before the next turn; of what is long, one at a time."""
        with self._lock:
            if self._thread is None and self._has_thread:
                self._thread = threading.Thread(target=self._work, name="runs", daemon=True)
                self._thread.start()
        (self._long_wishes if is_long else self._wishes).append(wish)
        self._wake.set()

    def turn(self) -> float:
        """Do what is wished, and give a turn to everybody who plays.

        Returns
        -------
        float
            Seconds until the next turn is due; a wish makes it due at once.
        """
        self.do_wishes()
        runs = list(self._runs.values())
        playing = max(1, sum(run.is_learning for run in runs))
        share = _Share(
            turn=max(SHORTEST_TURN, min(TURN, ROUND / playing)),
            ahead=max(1, AHEAD // playing),
            pause=self._picture * playing,
            backup_pause=playing / BACKUPS,
        )
        for run in runs:
            self._guarded(run, functools.partial(self._take_turn, run, share))
            self.do_wishes()
        dues = [
            (run.turn_due(share.ahead), run.picture_due(share.pause), run.backup_due(share.backup_pause))
            for run in self._runs.values()
        ]
        rest = min(itertools.chain(*dues), default=math.inf) - time.monotonic()
        if rest > 0:
            self._forget()
        return max(0.0, min(rest, LONGEST_REST))

    def do_wishes(self) -> None:
        """Do what is wished by now."""
        self._wake.clear()
        # What comes meanwhile waits until after a turn. So do long wishes: where a crowd arrives, those who
        # play go on.
        counts = (self._wishes, len(self._wishes)), (self._long_wishes, min(1, len(self._long_wishes)))
        for wishes, count in counts:
            for _ in range(count):
                try:
                    wishes.popleft()()
                except Exception:
                    _log.exception("A command failed.")
        if self._long_wishes:
            self._wake.set()

    def _open(
        self, viewer: Viewer, address: Mapping[str, str], name: str | None, token: str | None
    ) -> Run | None:
        run = self._runs.get(name or "")
        is_lost = bool(name) and run is None
        problems: list[str] = []
        if run is None or (run.viewer is not None and run.token != token):
            self._forget(math.inf if len(self._runs) < MOST else 0)
            if len(self._runs) >= MOST:
                return None
            settings, problems = Settings().changed(address)
            try:
                run = Run(settings, self._may_compile)
            except FeatureError as error:
                problems.append(f"{FIELDS['inputs'].label}: {error}")
                run = Run(dataclasses.replace(settings, inputs=Settings().inputs), self._may_compile)
            self._runs[run.id] = run
        run.show(viewer, problems, is_lost)
        return run

    def _may_compile(self) -> bool:
        """Whether a network may be traced now: seldom enough that nobody's pictures stand still."""
        now = time.monotonic()
        if now < self._compiled_at + COMPILE_PERIOD:
            return False
        self._compiled_at = now
        return True

    def _forget(self, most: float = MOST_WAITING) -> None:
        """Forget runs whose page has been gone for long, and those that have nothing to come back to."""
        waiting = sorted(
            (run for run in self._runs.values() if run.viewer is None), key=lambda run: -run.left_at
        )
        too_old = time.monotonic() - self._patience
        kept = [run for run in waiting if run.is_worth_keeping and run.left_at > too_old]
        for run in waiting:
            if run not in kept[: int(min(most, MOST_WAITING))]:
                del self._runs[run.id]

    def _work(self) -> None:
        """The thread."""
        sys.setswitchinterval(0.001)  # the server must not wait for this thread's Python
        while True:
            rest = self.turn()
            if rest > 0:
                self._wake.wait(rest)

    def _take_turn(self, run: Run, share: _Share) -> None:
        until = time.perf_counter() + share.turn
        if run.picture_due(share.pause) <= time.monotonic():
            run.send_picture()
        if run.turn_due(share.ahead) <= time.monotonic():
            rest = min(until - time.perf_counter(), run.picture_due(share.pause) - time.monotonic())
            run.learn(max(SHORTEST_TURN / 2, rest))
        if run.backup_due(share.backup_pause) <= time.monotonic():
            run.send_backup()

    def _guarded(self, run: Run, what: Callable[[], None]) -> None:
        """Do something for a run. A mistake of ours ends this run's play, and no other's."""
        try:
            what()
        except Exception:
            _log.exception("A run failed and stands still.")
            run.pause()
            run.tell("Something went wrong here, and the training stands still. Reset begins again.", "error")
