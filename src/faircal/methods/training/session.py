"""One training: its stages, how it goes on after a stop, and the device that it has."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_info
from torch import Tensor

from faircal._base.checkpoints import Checkpoint
from faircal._base.errors import ParameterError
from faircal._base.jobs import Job
from faircal.compute._torch_kernels import Recorded

#: Gives the loss of the rows of a batch under "loss", and whatever else is worth showing.
Losses = Callable[[Tensor], Mapping[str, Tensor]]


class TrainingSession:
    """The state of one training, and its checkpoints.

    A training is a fixed sequence of stage runs. Going on from a checkpoint is: restore the state,
    then pass over the runs that were finished.

    Parameters
    ----------
    device : torch.device
    seed : int
    job : Job
    mixed_precision : bool
        Multiply in bfloat16.
    """

    def __init__(
        self, device: torch.device, seed: int, job: Job, mixed_precision: bool = False
    ) -> None:
        self.device, self.seed, self.job = device, seed, job
        self.mixed_precision = mixed_precision
        self.generator = new_generator(device, seed)
        #: All that a training changes, in a fixed order.
        self.tensors: list[Tensor] = []
        #: The last losses of each stage.
        self.losses: dict[str, dict[str, float]] = {}
        #: Runs begun, by the name of their stage.
        self.begun: Counter[str] = Counter()
        self._file: Checkpoint | None = None
        self._state: dict[str, NDArray[Any]] | None = None
        self._at = (0, 0)  # run and epoch to go on from
        self._stages: list[Stage] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Let go of recorded steps now: later it might be while another training records one."""
        for stage in self._stages:
            stage.forget()

    def add(self, stage: Stage) -> None:
        """Take note of a stage."""
        self._stages.append(stage)

    def tensor(self, array: NDArray[Any]) -> Tensor:
        """Return `array` on the device."""
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def restore(self, recipe: Any, *more: Any, arrays: Sequence[NDArray[Any]]) -> None:
        """Go on from the checkpoint, where there is one; call when all `tensors` are there.

        The checkpoint carries a hash of all that the training's result depends on, so that one of
        another training is not taken for it.
        """
        settings = sorted(asdict(recipe).items())
        how = self.seed, self.device.type, self.mixed_precision, *more
        sha = hashlib.sha256(f"{settings} {how} {torch.__version__}".encode())
        for array in arrays:
            sha.update(np.ascontiguousarray(array).tobytes())
        depends = "data, parameters, seed, device or version of PyTorch"
        self._file = Checkpoint(self.job, sha.hexdigest(), "training", "train", depends)
        state = self._file.read()
        if state is None:
            return
        header = state.header
        self._at, self._state = (int(header["run"]), int(header["epoch"])), state.arrays
        self.losses = {stage: dict(means) for stage, means in header["losses"]}
        for i, tensor in enumerate(self.tensors):
            _fill(tensor, state.arrays[f"tensor.{i}"])
        self.generator.set_state(torch.from_numpy(state.arrays["generator"]))

    def next_run(self, stage: str) -> tuple[int | None, dict[str, NDArray[Any]] | None]:
        """Return the epoch at which the next run of `stage` starts (None: it is done already).

        Comes with the state of its optimiser, where the run was interrupted.
        """
        # Runs are numbered in the order in which they begin, which is the same in every training.
        run = self.begun.total()
        self.begun[stage] += 1
        if run < self._at[0]:
            return None, None
        return (self._at[1], self._state) if run == self._at[0] else (0, None)

    def offer(self, epoch: int, optimiser: torch.optim.Optimizer) -> None:
        """Write a checkpoint after `epoch` epochs of the present run, if it is time for one."""
        if self._file is None or not self._file.is_due:
            return
        arrays = {f"tensor.{i}": _array(tensor) for i, tensor in enumerate(self.tensors)}
        arrays |= {name: _array(tensor) for name, tensor in moments(optimiser).items()}
        arrays["generator"] = self.generator.get_state().numpy()
        header = {
            "run": self.begun.total() - 1,
            "epoch": epoch,
            "losses": [(stage, list(means.items())) for stage, means in self.losses.items()],
        }
        self._file.write(header, arrays)


def moments(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return what Adam remembers, by a fixed name for each tensor."""
    return {
        f"adam.{i}.{key}": optimiser.state[parameter][key]
        for i, parameter in enumerate(optimiser.param_groups[0]["params"])
        for key in ("step", "exp_avg", "exp_avg_sq")
    }


def _array(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().cpu().numpy()


def _fill(tensor: Tensor, values: NDArray[Any]) -> None:
    with torch.no_grad():
        tensor.copy_(torch.from_numpy(values).reshape(tensor.shape))


class Stage:
    """A part of a training: which parameters move, and down which loss.

    Its parameters alone are moved, by an Adam of its own that every run starts anew. On a GPU one
    step is recorded and then replayed: small networks are not starved by the time that it takes to
    start their kernels.

    Parameters
    ----------
    session : Session
    name : str
        For progress.
    parameters : sequence of Tensor
    losses : callable
    rows : int
        Rows of data, of which each epoch takes all, shuffled.
    batch_size : int
    learning_rate, weight_decay : float
    epochs : int
        Of one run.
    runs : int
        How often the stage will run, for progress.
    """

    def __init__(
        self,
        session: TrainingSession,
        name: str,
        parameters: Sequence[Tensor],
        losses: Losses,
        *,
        rows: int,
        batch_size: int,
        learning_rate: float,
        epochs: int,
        runs: int = 1,
        weight_decay: float = 0.0,
    ) -> None:
        self.session = session
        self.name = name
        self.parameters = list(parameters)
        self.losses = losses
        self.rows = rows
        self.batch_size = batch_size
        self.epochs = epochs
        self.runs = runs
        gpu = session.device.type == "cuda"
        self.optimiser = torch.optim.Adam(
            self.parameters,
            learning_rate,
            weight_decay=weight_decay,
            fused=True,
            capturable=gpu,
        )
        #: On a GPU: the batch that a recorded step reads, and the step, by the size of the batch.
        self._recorded: dict[int, tuple[Tensor, Recorded]] = {}
        self._sums: dict[str, Tensor] = {}
        session.add(self)

    def run(
        self,
        start: Callable[[], None] | None = None,
        prepare: Callable[[], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        """Train for the stage's epochs.

        Parameters
        ----------
        start : callable
            Done once, before the first epoch.
        prepare : callable
            Done before the first epoch and also when the run goes on from a checkpoint.
        stop : callable
            Asked before each epoch whether the run is to end.
        """
        done = self.session.begun[self.name] * self.epochs
        first, state = self.session.next_run(self.name)
        if first is not None:
            if first == 0 and start is not None:
                start()
            if prepare is not None:
                prepare()
            self._reset(state)
            for epoch in range(first, self.epochs):
                if stop is not None and stop():
                    break
                self._epoch()
                self._report(done + epoch + 1)
                self.session.offer(epoch + 1, self.optimiser)
        self._report(done + self.epochs)

    def _reset(self, state: Mapping[str, NDArray[Any]] | None) -> None:
        """Start Adam anew, or from `state`."""
        if not self.optimiser.state:
            for parameter in self.parameters:
                parameter.grad = torch.zeros_like(parameter)
            learning_rate = self.optimiser.param_groups[0]["lr"]
            self.optimiser.param_groups[0]["lr"] = 0.0
            self.optimiser.step()  # makes Adam's memory; nothing moves
            self.optimiser.param_groups[0]["lr"] = learning_rate
        for name, tensor in moments(self.optimiser).items():
            if state is None:
                tensor.zero_()
            else:
                _fill(tensor, state[name])

    def _epoch(self) -> None:
        session = self.session
        for total in self._sums.values():
            total.zero_()
        order = torch.randperm(self.rows, generator=session.generator, device=session.device)
        for batch in torch.split(order, min(self.batch_size, self.rows)):
            if session.device.type != "cuda":
                self.step(batch)
                continue
            if len(batch) not in self._recorded:  # one for full batches, one for an epoch's last
                inputs = torch.zeros_like(batch)
                step = Recorded(partial(self.step, inputs), session.device, session.generator)
                self._recorded[len(batch)] = inputs, step
            inputs, step = self._recorded[len(batch)]
            inputs.copy_(batch)
            step.take(1)
        means = {key: float(total) / self.rows for key, total in self._sums.items()}
        if not np.isfinite(means["loss"]):
            raise ParameterError(
                f"the training came to nothing in stage {self.name!r}: its loss is "
                f"{means['loss']}; lower the learning rate"
            )
        session.losses[self.name] = means

    def forget(self) -> None:
        """Let go of recorded steps."""
        self._recorded.clear()

    def step(self, batch: Tensor) -> None:
        """Move the parameters, and nothing else, down the loss of the rows `batch`."""
        session = self.session
        with torch.autocast(
            session.device.type, torch.bfloat16, session.mixed_precision, cache_enabled=False
        ):
            losses = self.losses(batch)
        # Not backward(): parameters of other stages are in the loss, and must keep no gradient.
        gradients = torch.autograd.grad(losses["loss"], self.parameters)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        self.optimiser.step()
        for key, loss in losses.items():
            if key not in self._sums:
                self._sums[key] = torch.zeros((), device=session.device)
            self._sums[key].add_(loss.detach(), alpha=len(batch))

    def _report(self, done: int) -> None:
        losses = self.session.losses.get(self.name, {})
        label = ", ".join(f"{key} {value:.4g}" for key, value in losses.items())
        self.session.job.progress(self.name, done, self.epochs * self.runs, label)


#: One training at a time on a GPU: recording a step allows no other work beside it.
_GPU = threading.Lock()


def new_generator(device: torch.device, seed: int) -> torch.Generator:
    """Return a source of random numbers; a seed of more than 63 bits is cut."""
    return torch.Generator(device).manual_seed(int(seed) % 2**63)


def describe(device: torch.device) -> str:
    """Return a device in words."""
    if device.type == "cuda":
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return str(device)


@contextmanager
def working_on(device: torch.device) -> Iterator[None]:
    """Hold `device`: alone on a GPU; on the CPU with as many threads as BLAS may use."""
    if device.type == "cuda":
        with _GPU:
            yield
    else:
        with _THREADS:
            yield


class _TorchThreads:
    """Sets PyTorch's number of threads, and puts it back when the last to need it has gone.

    The number is one for the whole process, so one of several trainings side by side must not
    change it under the others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._before = self._number = 1

    def __enter__(self) -> None:
        limits = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        with self._lock:
            if not self._holders:
                self._before = torch.get_num_threads()
                self._number = min(limits, default=self._before)
            self._holders += 1
            torch.set_num_threads(self._number)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._holders -= 1
            if not self._holders:
                torch.set_num_threads(self._before)


_THREADS = _TorchThreads()
