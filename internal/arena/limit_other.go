//go:build !linux && !darwin

package arena

func physicalMemory() int64 { return 0 }

func groupLimits() []int64 { return nil }

func processLimits() []int64 { return nil }
