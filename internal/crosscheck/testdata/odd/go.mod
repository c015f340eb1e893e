module odd

go 1.25
