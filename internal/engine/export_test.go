package engine

// SkipValidation switches the validation of reads at commit off or on, so that a
// test can show that the checks it relies on would notice if it were missing.
func SkipValidation(skip bool) { skipValidation = skip }
