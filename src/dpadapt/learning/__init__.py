"""What methods share: public fits, linear models, strategies, stories, checks of arguments."""
