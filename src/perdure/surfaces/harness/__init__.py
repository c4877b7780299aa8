"""Commands about projects: repositories, plans, what is to do, and who keeps state."""
