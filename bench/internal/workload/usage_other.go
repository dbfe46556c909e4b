//go:build !unix

package workload

func readUsage() usage { return usage{} }
