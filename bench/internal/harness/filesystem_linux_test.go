package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The read-ahead is that of the disk under a directory, which for a partition is one up.
func TestReadAheadIsThatOfTheDisk(t *testing.T) {
	dir := t.TempDir()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	for disk, part := range map[string]string{"vda": "", "sda": "sda1"} {
		devices := t.TempDir()
		queue := filepath.Join(devices, "block", disk, "queue")
		for _, d := range []string{queue, filepath.Join(devices, "block", disk, part)} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(queue, "read_ahead_kb"), []byte("8192\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := readAhead(devices, dir); got != "" {
			t.Errorf("of a directory on no device: %q", got)
		}
		if err := os.Symlink(filepath.Join("block", disk, part), filepath.Join(devices, number)); err != nil {
			t.Fatal(err)
		}
		if got := readAhead(devices, dir); got != "8192 KiB" {
			t.Errorf("of %s: %q, want 8192 KiB", filepath.Join(disk, part), got)
		}
	}
}
