package result

import (
	"fmt"
	"testing"
)

func TestPart(t *testing.T) {
	run := &Run{Workloads: []Workload{
		{ID: "w1/sound/n=20/sync=on", Columns: []Column{{Key: "put"}, {Key: "get"}, {Key: "disk"}}},
		{ID: "w1/sound/n=20/sync=off", Columns: []Column{{Key: "put"}, {Key: "get"}, {Key: "disk"}}},
		{ID: "w4/sound/n=20/sync=off", Columns: []Column{{Key: "put"}}},
	}}
	for _, w := range run.Workloads {
		run.Cells = append(run.Cells, Cell{Workload: w.ID})
	}
	before := fmt.Sprint(run)
	for _, c := range []struct {
		workloads, columns []string
		want               string
	}{
		{nil, nil, "w1/sound/n=20/sync=on:put,get,disk w1/sound/n=20/sync=off:put,get,disk w4/sound/n=20/sync=off:put"},
		{[]string{"w4", "w1/sync=on"}, nil, "w4/sound/n=20/sync=off:put w1/sound/n=20/sync=on:put,get,disk"},
		{nil, []string{"put"}, "w1/sound/n=20/sync=on:put w1/sound/n=20/sync=off:put w4/sound/n=20/sync=off:put"},
		{[]string{"w1/sync=off"}, []string{"disk", "put"}, "w1/sound/n=20/sync=off:disk,put"},
		{[]string{"w1/sync=on", "w1", "sync=on"}, []string{"put", "put"}, "w1/sound/n=20/sync=on:put w1/sound/n=20/sync=off:put"},
		{[]string{"w1/n=2"}, nil, `no workload "w1/n=2" in this run`},
		{[]string{"w4"}, []string{"get"}, `no column "get" in workload w4/sound/n=20/sync=off`},
	} {
		part, err := run.Part(c.workloads, c.columns)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			if len(part.Cells) != len(part.Workloads) {
				t.Errorf("%q: %d cells of %d workloads", c.workloads, len(part.Cells), len(part.Workloads))
			}
			for i, w := range part.Workloads {
				if i > 0 {
					got += " "
				}
				got += w.ID
				for j, col := range w.Columns {
					got += ":,"[min(j, 1):][:1] + col.Key
				}
			}
		}
		if got != c.want {
			t.Errorf("%q %q: %s\nwant %s", c.workloads, c.columns, got, c.want)
		}
	}
	if fmt.Sprint(run) != before {
		t.Error("the run itself was changed")
	}
}
