"""Reports: the view model, and its renderers for terminal, HTML, LaTeX, Markdown and model cards."""
