"""What the terminal and the page show of each answer to a study's question: sentences, tables,
figures."""
