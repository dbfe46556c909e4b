package crashtest

import (
	"testing"

	"github.com/cairndb/cairn/vfs/faultfs"
)

// TestOracleNotices takes syncs away by pretending them, kind by kind: if the
// enumeration did not notice, its silence elsewhere would prove nothing.
func TestOracleNotices(t *testing.T) {
	for _, c := range []struct {
		name     string
		rule     faultfs.Rule
		workload string
	}{
		{"log sync", faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log"}, "single-commits"},
		{"log sync, group", faultfs.Rule{Kinds: faultfs.Sync, Name: "*.log"}, "group-commit"},
		{"manifest sync", faultfs.Rule{Kinds: faultfs.Sync, Name: "MANIFEST-*"}, "reopen"},
		{"table sync", faultfs.Rule{Kinds: faultfs.Sync, Name: "*.sst"}, "flush"},
		{"CURRENT sync", faultfs.Rule{Kinds: faultfs.Sync, Name: "*.tmp"}, "reopen"},
		{"directory sync", faultfs.Rule{Kinds: faultfs.SyncDir}, "single-commits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := *workloadNamed(t, c.workload)
			do := w.Do
			w.Do = func(r *Run) {
				c.rule.Sticky, c.rule.Do = true, faultfs.Pretend()
				r.Faults.Add(c.rule)
				do(r)
			}
			e := NewEnumeration(&w, 1)
			if err := e.Run(2000); err == nil {
				t.Fatalf("nothing noticed in %d images", e.Images)
			} else {
				t.Logf("after %d images: %.300v", e.Images, err)
			}
		})
	}
}

func workloadNamed(t *testing.T, name string) *Workload {
	for _, w := range Workloads {
		if w.Name == name {
			return w
		}
	}
	t.Fatalf("no workload %s", name)
	return nil
}
