package compact

import "github.com/cairndb/cairn/internal/manifest"

// Fitting picks compactions for which there is space on the disk. Free and Shrink are set before its first use. Its
// method is called once at a time.
type Fitting struct {
	Free   func() (bytes int64, known bool) // how much space is free
	Shrink func()                           // gives back what was put aside and nobody needs

	doomed struct { // the compaction for which there was no space
		of   *manifest.Version
		free int64
	}
}

// Pick is the function Pick, but where there is not space for that compaction, or one is awaited and there is none, it
// picks one for which there is; what was put aside and nobody needs is space too. What found none is not tried again
// until tables have changed, or there is more. Who waits for space is not told to wait because of what was written in vain.
func (f *Fitting) Pick(v *manifest.Version, in Inputs, awaited bool) (Job, bool) {
	if awaited {
		in.InVain = 0
	}
	job, ok := Pick(v, in)
	if ok && job.Move || !ok && !awaited {
		return job, ok
	}
	free, known := f.Free()
	if !known || ok && job.Bytes() <= free {
		return job, ok
	}
	for range 2 {
		in.Room = max(free, 1)
		if fitting, some := Pick(v, in); some {
			return fitting, true
		}
		f.Shrink()
		free, _ = f.Free()
	}
	if ok = ok && (f.doomed.of != v || free > f.doomed.free); ok { // it may write less than its inputs tell
		f.doomed.of, f.doomed.free = v, free
	}
	return job, ok
}
