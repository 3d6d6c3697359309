"""Training of small networks: the only part of faircal that needs PyTorch.

`session` runs stages of epochs on a device, with progress, checkpoints and, on a GPU, recorded
steps; `networks` has the networks and losses of the trained methods; `comparison` trains FTC's
network, `debiasing` those of AGENDA, PASS and MultiPASS. Arrays go in, arrays come
out: no other part sees a tensor. Import the modules when they are needed, not before: `faircal`
works without PyTorch.
"""
