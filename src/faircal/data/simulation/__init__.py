"""Simulated populations of face embeddings: always called simulated, never about real people."""

from faircal.data.simulation.draw import simulate
from faircal.data.simulation.population import Group, Population
from faircal.data.simulation.presets import PRESETS, Preset

__all__ = ["PRESETS", "Group", "Population", "Preset", "simulate"]
