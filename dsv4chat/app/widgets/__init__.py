"""The app's widgets: one public widget a module, its style sheet beside it."""
