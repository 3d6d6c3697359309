"""Simulated populations of face embeddings: always called simulated, never about real people."""

from faircal.simulation.draw import simulate
from faircal.simulation.population import Group, Population
from faircal.simulation.presets import PRESETS, Preset

__all__ = ["PRESETS", "Group", "Population", "Preset", "simulate"]
