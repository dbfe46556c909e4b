package result

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// full returns a run with every field set, however deep.
func full(t *testing.T) *Run {
	run := &Run{}
	fill(t, reflect.ValueOf(run).Elem())
	run.Schema = Schema
	run.Engines[1].Name, run.Workloads[1].ID, run.Cells[1].Round = "other", "other", 8
	for i := range 2 {
		run.Workloads[i].Columns[1].Key, run.Cells[i].Status = "other", OK
	}
	run.Started = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	return run
}

func fill(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(1<<63 + 1)
	case reflect.Float64:
		v.SetFloat(0.1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fill(t, value)
		v.SetMapIndex(reflect.ValueOf("key"), value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("no value for a %s", v.Kind())
	}
}

func TestJSONRoundTrip(t *testing.T) {
	want := full(t)
	var text bytes.Buffer
	if err := want.Encode(&text); err != nil {
		t.Fatal(err)
	}
	got, err := Decode(&text)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDecodeRefusesOtherSchemas(t *testing.T) {
	for _, text := range []string{`{"schema":"cairn-bench/0"}`, `{}`, `[]`, ``, `{"schema":`} {
		if _, err := Decode(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// A file that holds more than one run used to be read as the first of them.
func TestDecodeRefusesWhatIsBehind(t *testing.T) {
	one := `{"schema":"cairn-bench/1"}`
	for _, behind := range []string{one, "\n" + one, " x", "}", "\n]", "\x00"} {
		if _, err := Decode(strings.NewReader(one + behind)); err == nil {
			t.Errorf("with %q behind it it is read", behind)
		}
	}
	if _, err := Decode(strings.NewReader("\n" + one + " \n\t\r\n")); err != nil {
		t.Error(err)
	}
}

func TestBad(t *testing.T) {
	run := &Run{}
	for _, s := range []Status{OK, Void, Failed, Crashed, Hung, Absent} {
		run.Cells = append(run.Cells, Cell{Status: s})
	}
	if n := len(run.Bad()); n != 4 {
		t.Errorf("%d bad cells of 6, want 4", n)
	}
}

func TestRatio(t *testing.T) {
	for _, c := range []struct {
		unit       Unit
		a, b, want float64
	}{
		{NanosPerOp, 3, 2, 1.5}, {NanosPerOp, 0.002, 0.001, 2}, {NanosPerOp, 0, 0, 1}, {NanosPerOp, 1, 0, math.Inf(1)},
		{AllocsPerOp, 0.004, 0, 1}, {AllocsPerOp, 0.04, 0.002, 4}, {AllocsPerOp, 0, 2, 0.005}, {BytesPerOp, 0.9, 0.1, 1}, {BytesPerOp, 3, 0, 3},
	} {
		if got := c.unit.Ratio(c.a, c.b); math.Abs(got-c.want) > 1e-9 && got != c.want {
			t.Errorf("%s: %v / %v = %v, want %v", c.unit, c.a, c.b, got, c.want)
		}
	}
}
