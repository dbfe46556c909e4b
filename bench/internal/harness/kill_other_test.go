//go:build !linux

package harness

const harnessMark = "CAIRN_BENCH_TEST_HARNESS"

const smallMark = "CAIRN_BENCH_TEST_SMALL_DISK"

func runOnSmallDisk(string) {}

func runHangingHarness(string) {}
