"""All imposter pairs of a gallery, or some drawn evenly, made by the workers that use them."""
