"""The app's pages: each module has a `page` function."""
