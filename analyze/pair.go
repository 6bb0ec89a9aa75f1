package analyze

// PairOptions are what a person states of the far captures.
type PairOptions struct{}

func pair(res *Result, near, far []*analysis, opt PairOptions) {}
