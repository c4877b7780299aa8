"""What may be remembered, and in which form: nothing hidden, no secrets, nobody's orders."""
