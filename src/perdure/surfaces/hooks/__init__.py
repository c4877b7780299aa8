"""What coding agents call at the turns of a session. It never breaks or blocks them."""
