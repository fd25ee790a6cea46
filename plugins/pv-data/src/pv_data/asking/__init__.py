"""Models are asked through pv_rl's judge client, and every answer is kept before it is used."""
