"""A page at ``/``: verify two faces, read the model's card, watch the service."""

from faircal.production.serving.page.routes import page_router

__all__ = ["page_router"]
