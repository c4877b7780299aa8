"""Erasing memories from the present, the past and all that was derived from them."""
