"""Read for hybrid methods: agents who randomise their own answers, a second core."""
