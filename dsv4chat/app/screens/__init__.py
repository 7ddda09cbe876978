"""The app's screens: the chat itself and the small ones that open over it."""
