"""A model in production: an HTTP service that verifies, enrols and identifies.

`faircal.production.serving.service.Service` is the core without HTTP,
`faircal.production.serving.app.make_app` puts HTTP before it. Nothing here imports a web framework
until it is used.
"""
