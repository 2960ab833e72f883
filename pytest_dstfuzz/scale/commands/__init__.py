"""Commands of campaigns that are kept in folders."""
