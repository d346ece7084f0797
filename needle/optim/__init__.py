"""Optimisers, and schedules of their learning rate."""

from .optimizer import Optimizer
from .rules import SGD, Adam, AdamW, RMSProp
from .schedules import CosineLR, Schedule, StepLR, WarmUp

__all__ = ["SGD", "Adam", "AdamW", "CosineLR", "Optimizer", "RMSProp", "Schedule", "StepLR", "WarmUp"]
