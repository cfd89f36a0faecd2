"""Ray and its machines: started, joined, asked whether they can run the trials."""
