"""Tools for those who look after the house: measure it, draw it, wrap its pages."""
