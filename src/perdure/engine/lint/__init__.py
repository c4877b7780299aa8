"""What is wrong with notes, by their own words: found and told, never mended."""
