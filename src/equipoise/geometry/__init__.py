"""Geometries: distances, validity of points, and nearest neighbours."""
