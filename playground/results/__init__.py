"""What a run gives away: graphs and surfaces, files, and the script and the notebook that repeat it."""
