"""Simulated populations of face embeddings: always called simulated, never about real people."""

from faircal.data.simulation.draw import simulate
from faircal.data.simulation.population import PRESETS, PopulationModel, Preset, SimulatedGroup

__all__ = ["PRESETS", "PopulationModel", "Preset", "SimulatedGroup", "simulate"]
