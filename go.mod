module github.com/srcproof/srcproof

go 1.26
