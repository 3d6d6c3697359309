"""Simulated populations of face embeddings: always called simulated, never about real people."""

from faircal.simulation.population import Group, Population
from faircal.simulation.presets import PRESETS, Preset
from faircal.simulation.simulate import simulate

__all__ = ["PRESETS", "Group", "Population", "Preset", "simulate"]
