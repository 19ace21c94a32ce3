package main

import "context"

func speed(ctx context.Context, n int) error { return nil }
