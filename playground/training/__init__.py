"""A training that can be watched: settings, data, network, and its history. It knows nothing of the app."""
