# Spatial functions. Metres are those of the WGS 84 ellipsoid.
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [-122.12826822304672, 47.63980239335718]}, {"type": "Point", "coordinates": [-122.11758113953535, 47.66901087006131]}), 3)
3345.27
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [-96.84368664765994, 46.81297794314663]}, {"type": "Point", "coordinates": [-122.11758113953535, 47.66901087006131]}) / 1000, 3)
1907.438
> ROUND(ST_AREA({"type": "Polygon", "coordinates": [[[31.8, -5], [32, -5], [32, -4.7], [31.8, -4.7], [31.8, -5]]]}))
735970283
> ST_ISVALID({"type": "Point", "coordinates": [-84.38876194345323, 33.75682784306348]})
true
> ST_ISVALID({"type": "Point", "coordinates": [133.7568278430635, -184.38876194345323]})
false
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": [-84.38876194345323, 33.75682784306348]})
{"valid":true}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": [133.7568278430635, -184.38876194345323]})
{"valid":false,"reason":"Latitude values must be between -90 and 90 degrees."}
> ST_WITHIN({"type": "Point", "coordinates": [31.9, -4.8]}, {"type": "Polygon", "coordinates": [[[31.8, -5], [32, -5], [32, -4.7], [31.8, -4.7], [31.8, -5]]]})
true
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [0, 0]}, {"type": "Point", "coordinates": [1, 0]}))
111319
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [0, 0]}, {"type": "Point", "coordinates": [0, 1]}))
110574
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [0, 0]}, {"type": "Point", "coordinates": [0, 90]}))
10001966
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [17, 90]}, {"type": "Point", "coordinates": [99, -90]}))
20003931
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [179.5, 0]}, {"type": "Point", "coordinates": [-179.5, 0]}))
111319
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [0, 90]}, {"type": "Point", "coordinates": [123, 90]}))
0
> ST_DISTANCE({"type": "Point", "coordinates": [5, 5]}, {"type": "Point", "coordinates": [5, 5]})
0
> ST_DISTANCE({"type": "Point", "coordinates": [180, 0]}, {"type": "Point", "coordinates": [-180, 0]})
0
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [0, 0]}, {"type": "Point", "coordinates": [1, 0, 8848]}))
111319
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [5, 1]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]}))
110574
> ROUND(ST_DISTANCE({"type": "LineString", "coordinates": [[0, 0], [10, 0]]}, {"type": "Point", "coordinates": [5, 1]}))
110574
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [11, 0]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]}))
111319
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [5, -1]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}))
110574
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [-1, 0]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}))
111319
> ST_DISTANCE({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
0
> ST_DISTANCE({"type": "Point", "coordinates": [0, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
0
> ST_DISTANCE({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]}) > 0
true
> ST_DISTANCE({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]}) > 500000
true
> ST_DISTANCE({"type": "Point", "coordinates": [50, 50]}, {"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]})
0
> ROUND(ST_DISTANCE({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[0, -10], [10, -10], [10, -1], [0, -1], [0, -10]]]}))
110574
> ST_DISTANCE({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[5, 5], [15, 5], [15, 15], [5, 15], [5, 5]]]})
0
> ST_DISTANCE({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]})
0
> ST_DISTANCE({"type": "Polygon", "coordinates": [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
0
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [31, 0]}, {"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]}))
111319
> ST_DISTANCE({"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]}, {"type": "Polygon", "coordinates": [[[-5, -5], [40, -5], [40, 20], [-5, 20], [-5, -5]]]})
0
> ST_DISTANCE({"type": "MultiPolygon", "coordinates": [[[[50, 50], [51, 50], [51, 51], [50, 51], [50, 50]]], [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
0
> ST_DISTANCE(undefined, {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE(null, {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE(1, {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE("POINT(0 0)", {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE([0, 0], {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE({}, {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE({"type": "Point"}, {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE({"type": "Circle", "coordinates": [0, 0]}, {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE({"type": "Point", "coordinates": [0, 91]}, {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE({"type": "Point", "coordinates": ["0", 0]}, {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE({"type": "Point", "coordinates": [0]}, {"type": "Point", "coordinates": [0, 0]})
(none)
> ST_DISTANCE({"type": "Point", "coordinates": [0, 0]}, {"type": "Polygon", "coordinates": []})
(none)
> ST_WITHIN({"type": "Point", "coordinates": [0, 0]}, null)
(none)
> ST_WITHIN({"type": "Point", "coordinates": [0, 0]}, {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1]]]})
(none)
> ST_INTERSECTS(1, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
(none)
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Point", "coordinates": [200, 0]})
(none)
> ST_AREA(undefined)
(none)
> ST_AREA("x")
(none)
> ST_AREA({"type": "Point", "coordinates": [0, 100]})
(none)
> ST_WITHIN({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [1, 1]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [11, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [5, -0.001]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [5, 0.001]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [0, 0]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [5, 0]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [0, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [50, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [-60, -60]}, {"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [25, 5]}, {"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [15, 5]}, {"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [180, 0]}, {"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [-175, 0]}, {"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [175, 4]}, {"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [0, 0]}, {"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [165, 0]}, {"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [45, 89]}, {"type": "Polygon", "coordinates": [[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [0, 90]}, {"type": "Polygon", "coordinates": [[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [45, 79]}, {"type": "Polygon", "coordinates": [[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [45, -89]}, {"type": "Polygon", "coordinates": [[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]]})
false
> ST_WITHIN({"type": "LineString", "coordinates": [[0, 0], [10, 0]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "LineString", "coordinates": [[1, 1], [9, 9]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "LineString", "coordinates": [[1, 1], [9, 9]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_WITHIN({"type": "LineString", "coordinates": [[1, 1], [11, 1]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_WITHIN({"type": "LineString", "coordinates": [[-1, 5], [11, 5]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_WITHIN({"type": "LineString", "coordinates": [[11, 1], [12, 1]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_WITHIN({"type": "LineString", "coordinates": [[1, 1], [3, 9], [9, 9]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
true
> ST_WITHIN({"type": "Polygon", "coordinates": [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]})
false
> ST_WITHIN({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Polygon", "coordinates": [[[5, 5], [15, 5], [15, 15], [5, 15], [5, 5]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_WITHIN({"type": "Polygon", "coordinates": [[[2, 2], [8, 2], [8, 8], [2, 8], [2, 2]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_WITHIN({"type": "Polygon", "coordinates": [[[4.5, 4.5], [5.5, 4.5], [5.5, 5.5], [4.5, 5.5], [4.5, 4.5]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_WITHIN({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_WITHIN({"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_WITHIN({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]})
true
> ST_WITHIN({"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]}, {"type": "Polygon", "coordinates": [[[-5, -5], [40, -5], [40, 20], [-5, 20], [-5, -5]]]})
true
> ST_WITHIN({"type": "MultiPolygon", "coordinates": [[[[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]], [[[21, 1], [22, 1], [22, 2], [21, 2], [21, 1]]]]}, {"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [5, 0]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [5, 1]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [1, 2]}, {"type": "Point", "coordinates": [1, 2]})
true
> ST_WITHIN({"type": "Point", "coordinates": [1, 2]}, {"type": "Point", "coordinates": [1, 3]})
false
> ST_WITHIN({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
false
> ST_WITHIN({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Point", "coordinates": [5, 5]})
false
> ST_WITHIN({"type": "LineString", "coordinates": [[2, 0], [3, 0]]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
true
> ST_WITHIN({"type": "LineString", "coordinates": [[2, 0], [3, 1]]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[5, 5], [15, 5], [15, 15], [5, 15], [5, 5]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[5, 5], [15, 5], [15, 15], [5, 15], [5, 5]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[11, 11], [12, 11], [12, 12], [11, 12], [11, 11]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[11, 11], [12, 11], [12, 12], [11, 12], [11, 11]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[10, 0], [20, 0], [20, 10], [10, 10], [10, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[10, 0], [20, 0], [20, 10], [10, 10], [10, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[4.5, 4.5], [5.5, 4.5], [5.5, 5.5], [4.5, 5.5], [4.5, 4.5]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]}, {"type": "Polygon", "coordinates": [[[4.5, 4.5], [5.5, 4.5], [5.5, 5.5], [4.5, 5.5], [4.5, 4.5]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[3, 3], [5, 3], [5, 5], [3, 5], [3, 3]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]}, {"type": "Polygon", "coordinates": [[[3, 3], [5, 3], [5, 5], [3, 5], [3, 3]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
true
> ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 0], [10, 0]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "LineString", "coordinates": [[-5, 5], [15, 5]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "LineString", "coordinates": [[-5, 5], [15, 5]]})
true
> ST_INTERSECTS({"type": "LineString", "coordinates": [[-5, 15], [15, 15]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "LineString", "coordinates": [[-5, 15], [15, 15]]})
false
> ST_INTERSECTS({"type": "LineString", "coordinates": [[1, 1], [2, 2]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "LineString", "coordinates": [[1, 1], [2, 2]]})
true
> ST_INTERSECTS({"type": "LineString", "coordinates": [[4.5, 4.5], [5.5, 5.5]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]}, {"type": "LineString", "coordinates": [[4.5, 4.5], [5.5, 5.5]]})
false
> ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 0], [10, 10]]}, {"type": "LineString", "coordinates": [[0, 10], [10, 0]]})
true
> ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 10], [10, 0]]}, {"type": "LineString", "coordinates": [[0, 0], [10, 10]]})
true
> ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 0], [10, 10]]}, {"type": "LineString", "coordinates": [[0, 1], [10, 11]]})
false
> ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 1], [10, 11]]}, {"type": "LineString", "coordinates": [[0, 0], [10, 10]]})
false
> ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 0], [10, 0]]}, {"type": "LineString", "coordinates": [[10, 0], [20, 5]]})
true
> ST_INTERSECTS({"type": "LineString", "coordinates": [[10, 0], [20, 5]]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
true
> ST_INTERSECTS({"type": "Point", "coordinates": [5, 0]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
true
> ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 0], [10, 0]]}, {"type": "Point", "coordinates": [5, 0]})
true
> ST_INTERSECTS({"type": "Point", "coordinates": [5, 0.001]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
false
> ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 0], [10, 0]]}, {"type": "Point", "coordinates": [5, 0.001]})
false
> ST_INTERSECTS({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Point", "coordinates": [5, 5]})
true
> ST_INTERSECTS({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]}, {"type": "Point", "coordinates": [5, 5]})
false
> ST_INTERSECTS({"type": "Point", "coordinates": [1, 2]}, {"type": "Point", "coordinates": [1, 2]})
true
> ST_INTERSECTS({"type": "Point", "coordinates": [1, 2]}, {"type": "Point", "coordinates": [1, 2]})
true
> ST_INTERSECTS({"type": "Point", "coordinates": [1, 2]}, {"type": "Point", "coordinates": [2, 1]})
false
> ST_INTERSECTS({"type": "Point", "coordinates": [2, 1]}, {"type": "Point", "coordinates": [1, 2]})
false
> ST_INTERSECTS({"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]}, {"type": "Point", "coordinates": [25, 5]})
true
> ST_INTERSECTS({"type": "Point", "coordinates": [25, 5]}, {"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]})
true
> ST_INTERSECTS({"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]}, {"type": "Point", "coordinates": [15, 5]})
false
> ST_INTERSECTS({"type": "Point", "coordinates": [15, 5]}, {"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]})
false
> ST_INTERSECTS({"type": "MultiPolygon", "coordinates": [[[[50, 50], [51, 50], [51, 51], [50, 51], [50, 50]]], [[[21, 1], [22, 1], [22, 2], [21, 2], [21, 1]]]]}, {"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]})
true
> ST_INTERSECTS({"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]}, {"type": "MultiPolygon", "coordinates": [[[[50, 50], [51, 50], [51, 51], [50, 51], [50, 50]]], [[[21, 1], [22, 1], [22, 2], [21, 2], [21, 1]]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]}, {"type": "Point", "coordinates": [5, 5]})
false
> ST_INTERSECTS({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]}, {"type": "Point", "coordinates": [180, 1]})
true
> ST_INTERSECTS({"type": "Point", "coordinates": [180, 1]}, {"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]}, {"type": "LineString", "coordinates": [[179, 0], [-179, 0]]})
true
> ST_INTERSECTS({"type": "LineString", "coordinates": [[179, 0], [-179, 0]]}, {"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]}, {"type": "LineString", "coordinates": [[160, 0], [165, 0]]})
false
> ST_INTERSECTS({"type": "LineString", "coordinates": [[160, 0], [165, 0]]}, {"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]})
false
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]]}, {"type": "LineString", "coordinates": [[0, 89], [180, 89]]})
true
> ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 89], [180, 89]]}, {"type": "Polygon", "coordinates": [[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]]})
true
> ST_AREA({"type": "Point", "coordinates": [0, 0]})
0
> ST_AREA({"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
0
> ROUND((ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}) + ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]})) / 1000000)
510065622
> ROUND((ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]}) + ST_AREA({"type": "Polygon", "coordinates": [[[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]}) - ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})) / 1000)
0
> ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]}) = ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]})
true
> ROUND((ST_AREA({"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]}) - 2 * ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})) / 1000)
0
> ROUND(ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [90, 0], [180, 0], [-90, 0], [0, 0]]]}) / 1000000000)
255033
> ROUND(ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [90, 0], [0, 90], [0, 0]]]}) / 1000000000)
63758
> ST_ISVALIDDETAILED(null)
{"valid":false,"reason":"The value is not a GeoJSON object."}
> ST_ISVALIDDETAILED(5)
{"valid":false,"reason":"The value is not a GeoJSON object."}
> ST_ISVALIDDETAILED("x")
{"valid":false,"reason":"The value is not a GeoJSON object."}
> ST_ISVALIDDETAILED([1, 2])
{"valid":false,"reason":"The value is not a GeoJSON object."}
> ST_ISVALIDDETAILED({})
{"valid":false,"reason":"A GeoJSON object needs a 'type' string and a 'coordinates' array."}
> ST_ISVALIDDETAILED({"type": 1, "coordinates": [0, 0]})
{"valid":false,"reason":"A GeoJSON object needs a 'type' string and a 'coordinates' array."}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": "0 0"})
{"valid":false,"reason":"A GeoJSON object needs a 'type' string and a 'coordinates' array."}
> ST_ISVALIDDETAILED({"type": "point", "coordinates": [0, 0]})
{"valid":false,"reason":"The type must be Point, LineString, Polygon or MultiPolygon."}
> ST_ISVALIDDETAILED({"type": "MultiPoint", "coordinates": [[0, 0]]})
{"valid":false,"reason":"The type must be Point, LineString, Polygon or MultiPolygon."}
> ST_ISVALIDDETAILED({"type": "GeometryCollection", "coordinates": []})
{"valid":false,"reason":"The type must be Point, LineString, Polygon or MultiPolygon."}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": []})
{"valid":false,"reason":"A position must be an array of at least two numbers."}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": [1]})
{"valid":false,"reason":"A position must be an array of at least two numbers."}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": [1, null]})
{"valid":false,"reason":"A position must be an array of at least two numbers."}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": ["1", "2"]})
{"valid":false,"reason":"A position must be an array of at least two numbers."}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": [0, 90.0001]})
{"valid":false,"reason":"Latitude values must be between -90 and 90 degrees."}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": [0, -90.0001]})
{"valid":false,"reason":"Latitude values must be between -90 and 90 degrees."}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": [180.0001, 0]})
{"valid":false,"reason":"Longitude values must be between -180 and 180 degrees."}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": [-181, 0]})
{"valid":false,"reason":"Longitude values must be between -180 and 180 degrees."}
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": [999, 999]})
{"valid":false,"reason":"Latitude values must be between -90 and 90 degrees."}
> ST_ISVALIDDETAILED({"type": "LineString", "coordinates": []})
{"valid":false,"reason":"A LineString must have at least two positions."}
> ST_ISVALIDDETAILED({"type": "LineString", "coordinates": [[0, 0]]})
{"valid":false,"reason":"A LineString must have at least two positions."}
> ST_ISVALIDDETAILED({"type": "LineString", "coordinates": [0, 0]})
{"valid":false,"reason":"A position must be an array of at least two numbers."}
> ST_ISVALIDDETAILED({"type": "LineString", "coordinates": [[0, 0], [0, 95]]})
{"valid":false,"reason":"Latitude values must be between -90 and 90 degrees."}
> ST_ISVALIDDETAILED({"type": "LineString", "coordinates": [[0, 0], [180, 0]]})
{"valid":false,"reason":"Neighbouring positions must not be antipodal."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": []})
{"valid":false,"reason":"A Polygon must have at least one ring."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": [[]]})
{"valid":false,"reason":"A ring must have at least four positions."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": [5]})
{"valid":false,"reason":"A line or ring must be an array of positions."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": [[[0, 0], [1, 1], [0, 0]]]})
{"valid":false,"reason":"A ring must have at least four positions."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1]]]})
{"valid":false,"reason":"A ring must end where it begins."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": [[[0, 0], [10, 10], [10, 0], [0, 10], [0, 0]]]})
{"valid":false,"reason":"A ring must not cross itself."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 0], [1, 1], [0, 0]]]})
{"valid":false,"reason":"A ring must not have the same position twice in a row."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [5, 5], [4, 4]]]})
{"valid":false,"reason":"A ring must have at least four positions."}
> ST_ISVALIDDETAILED({"type": "MultiPolygon", "coordinates": []})
{"valid":false,"reason":"A MultiPolygon must have at least one polygon."}
> ST_ISVALIDDETAILED({"type": "MultiPolygon", "coordinates": [[]]})
{"valid":false,"reason":"A Polygon must have at least one ring."}
> ST_ISVALIDDETAILED({"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]], [[[0, 0], [1, 0], [1, 1], [0, 1]]]]})
{"valid":false,"reason":"A ring must end where it begins."}
> ST_ISVALID({"type": "Point", "coordinates": [0, 0]})
true
> ST_ISVALID({"type": "Point", "coordinates": [180, 90]})
true
> ST_ISVALID({"type": "Point", "coordinates": [-180, -90]})
true
> ST_ISVALID({"type": "Point", "coordinates": [1, 2, 3, "x"]})
true
> ST_ISVALID({"bbox": [0], "type": "Point", "coordinates": [1, 2]})
true
> ST_ISVALID({"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
true
> ST_ISVALID({"type": "LineString", "coordinates": [[0, 0], [0, 0]]})
true
> ST_ISVALID({"type": "LineString", "coordinates": [[0, 0], [1, 1], [0, 0]]})
true
> ST_ISVALID({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_ISVALID({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
true
> ST_ISVALID({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]]})
true
> ST_ISVALID({"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]})
true
> ST_ISVALID({"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]], [[[20, 0], [30, 0], [30, 10], [20, 10], [20, 0]]]]})
true
> ST_ISVALID({"type": "Polygon", "coordinates": [[[170, -5], [-170, -5], [-170, 5], [170, 5], [170, -5]]]})
true
> ST_ISVALID({"type": "Polygon", "coordinates": [[[0, 80], [90, 80], [180, 80], [-90, 80], [0, 80]]]})
true
> ST_ISVALID({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [0, 1], [0, 0]]]})
true
> ST_ISVALID(null)
false
> ST_ISVALID({})
false
> ST_ISVALID({"type": "Point", "coordinates": [0, 91]})
false
> ST_ISVALID({"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1]]]})
false
> ST_ISVALID({"type": "LineString", "coordinates": [[0, 0]]})
false
> ST_ISVALID("POINT(1 1)")
false
> ST_ISVALID(undefined)
(none)
> ST_ISVALIDDETAILED(undefined)
(none)
> ST_DISTANCE({"type": "Point", "coordinates": [0, 0]})
! SC2050 13-66 The ST_DISTANCE function requires 2 argument(s).
> ST_WITHIN()
! SC2050 13-24 The ST_WITHIN function requires 2 argument(s).
> ST_AREA(1, 2)
! SC2050 13-26 The ST_AREA function requires 1 argument(s).

reset
doc {"id":"a","pk":"1","loc":{"type": "Point", "coordinates": [1, 1]}}
doc {"id":"b","pk":"2","loc":{"type": "Point", "coordinates": [11, 1]}}
doc {"id":"c","pk":"1","loc":{"type":"Point","coordinates":[200,0]}}
doc {"id":"d","pk":"1"}
doc {"id":"e","pk":"1","loc":{"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}}
> SELECT VALUE c.id FROM c WHERE ST_WITHIN(c.loc, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
"a"
"e"
> SELECT VALUE c.id FROM c WHERE NOT ST_WITHIN(c.loc, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
"b"
> SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.loc, {"type": "Point", "coordinates": [1, 0]}) < 200000
"a"
"e"
> SELECT VALUE c.id FROM c WHERE ST_DISTANCE(c.loc, c.loc) = 0
"a"
"b"
"e"
> SELECT VALUE c.id FROM c WHERE ST_ISVALID(c.loc) = false
"c"
> SELECT VALUE c.id FROM c WHERE ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 1], [20, 1]]}, c.loc)
"e"

# In a plane: containers whose geospatial configuration is Geometry.
planar
> ST_DISTANCE({"type": "Point", "coordinates": [0, 0]}, {"type": "Point", "coordinates": [3, 4]})
5
> ST_DISTANCE({"type": "Point", "coordinates": [-500, 1000]}, {"type": "Point", "coordinates": [-500, 1000]})
0
> ROUND(ST_DISTANCE({"type": "Point", "coordinates": [-122.34, 47.62]}, {"type": "Point", "coordinates": [-122.33, 47.61]}) * 10000) / 10000
0.0141
> ST_DISTANCE({"type": "Point", "coordinates": [179, 0]}, {"type": "Point", "coordinates": [-179, 0]})
358
> ST_DISTANCE({"type": "Point", "coordinates": [5, 3]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
3
> ST_DISTANCE({"type": "Point", "coordinates": [13, 4]}, {"type": "LineString", "coordinates": [[0, 0], [10, 0]]})
5
> ST_DISTANCE({"type": "LineString", "coordinates": [[0, 0], [10, 10]]}, {"type": "LineString", "coordinates": [[0, 10], [10, 0]]})
0
> ST_DISTANCE({"type": "LineString", "coordinates": [[0, 0], [10, 0]]}, {"type": "LineString", "coordinates": [[0, 2], [10, 7]]})
2
> ST_DISTANCE({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
0
> ST_DISTANCE({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]]]})
0
> ST_DISTANCE({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
1
> ST_DISTANCE({"type": "Polygon", "coordinates": [[[4.5, 4.5], [5.5, 4.5], [5.5, 5.5], [4.5, 5.5], [4.5, 4.5]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
0.5
> ST_DISTANCE({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[2, 2], [3, 2], [3, 3], [2, 3], [2, 2]]]})
0
> ST_DISTANCE({"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [1, 1], [0, 0]]], [[[100, 0], [101, 0], [101, 1], [100, 0]]]]}, {"type": "Point", "coordinates": [98, 0]})
2
> ST_DISTANCE({"type": "MultiPolygon", "coordinates": [[[[0, 0], [1, 0], [1, 1], [0, 0]]], [[[100, 0], [101, 0], [101, 1], [100, 0]]]]}, {"type": "Polygon", "coordinates": [[[90, -10], [110, -10], [110, 10], [90, 10], [90, -10]]]})
0
> ST_DISTANCE({"type": "Point", "coordinates": [0, 0]}, {"type": "Point"})
(none)
> ST_DISTANCE({"type": "Point", "coordinates": [0, 0]}, "x")
(none)
> ST_DISTANCE({"type": "Point", "coordinates": [1e100, 0]}, {"type": "Point", "coordinates": [-1e100, 0]})
2e+100
> ST_WITHIN({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [10, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Point", "coordinates": [10.001, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_WITHIN({"type": "Point", "coordinates": [5, 5]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_WITHIN({"type": "LineString", "coordinates": [[1, 1], [9, 9]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "LineString", "coordinates": [[1, 1], [9, 9]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_WITHIN({"type": "LineString", "coordinates": [[0, 0], [10, 0]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "LineString", "coordinates": [[1, 2], [9, 2]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [5, 1], [0, 10], [0, 0]]]})
false
> ST_WITHIN({"type": "LineString", "coordinates": [[2, 0], [5, 0]]}, {"type": "LineString", "coordinates": [[0, 0], [4, 0], [10, 0]]})
true
> ST_WITHIN({"type": "LineString", "coordinates": [[2, 0], [5, 1]]}, {"type": "LineString", "coordinates": [[0, 0], [4, 0], [10, 0]]})
false
> ST_WITHIN({"type": "Polygon", "coordinates": [[[1, 1], [2, 1], [2, 2], [1, 1]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_WITHIN({"type": "Polygon", "coordinates": [[[3, 3], [7, 3], [7, 7], [3, 7], [3, 3]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
false
> ST_WITHIN({"type": "Polygon", "coordinates": [[[1, 1], [2, 1], [2, 2], [1, 1]]]}, {"type": "LineString", "coordinates": [[0, 0], [4, 4]]})
false
> ST_INTERSECTS({"type": "LineString", "coordinates": [[0, 5], [20, 5]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[10, 0], [20, 0], [20, 10], [10, 10], [10, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
true
> ST_INTERSECTS({"type": "Polygon", "coordinates": [[[11, 0], [20, 0], [20, 10], [11, 10], [11, 0]]]}, {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
false
> ST_INTERSECTS({"type": "Point", "coordinates": [1000, 2000]}, {"type": "Point", "coordinates": [1000, 2000]})
true
> ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]})
100
> ST_AREA({"type": "Polygon", "coordinates": [[[0, 0], [0, 10], [10, 10], [10, 0], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]})
96
> ST_AREA({"type": "MultiPolygon", "coordinates": [[[[0, 0], [2, 0], [2, 2], [0, 0]]], [[[100, 0], [104, 0], [104, 4], [100, 0]]]]})
10
> ST_AREA({"type": "LineString", "coordinates": [[0, 0], [2, 0]]})
0
> ST_ISVALID({"type": "Point", "coordinates": [133.75, -184.38]})
true
> ST_ISVALID({"type": "Point", "coordinates": [1e99, -1e99]})
true
> ST_ISVALID({"type": "Polygon", "coordinates": [[[0, 0], [1000, 0], [1000, 1000], [0, 0]]]})
true
> ST_ISVALIDDETAILED({"type": "Point", "coordinates": [2e100, 0]})
{"valid":false,"reason":"Coordinates must be numbers between -1e100 and 1e100."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": [[[0, 0], [10, 10], [10, 0], [0, 10], [0, 0]]]})
{"valid":false,"reason":"A ring must not cross itself."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": [[[180, 0], [190, 0], [190, 10], [-180, 0]]]})
{"valid":false,"reason":"A ring must end where it begins."}
> ST_ISVALIDDETAILED({"type": "Polygon", "coordinates": [[[0, 0], [0, 0], [10, 0], [10, 10], [0, 0]]]})
{"valid":false,"reason":"A ring must not have the same position twice in a row."}
> ST_ISVALIDDETAILED({"type": "LineString", "coordinates": [[0, 0]]})
{"valid":false,"reason":"A LineString must have at least two positions."}
> ST_ISVALID("x")
false

reset
> ST_ISVALID({"type": "Point", "coordinates": [133.75, -184.38]})
false

# The only expressions in ORDER BY are distances.
reset
doc {"id":"a","pk":"1","loc":{"type":"Point","coordinates":[3,0]}}
doc {"id":"b","pk":"2","loc":{"type":"Point","coordinates":[1,0]}}
doc {"id":"c","pk":"1","loc":{"type":"Point","coordinates":[300,0]}}
doc {"id":"d","pk":"1"}
doc {"id":"e","pk":"1","loc":{"type":"Polygon","coordinates":[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}}
doc {"id":"f","pk":"2","loc":{"type":"Point","coordinates":[1,0]}}
@p = {"type":"Point","coordinates":[0,0]}
> SELECT VALUE c.id FROM c ORDER BY ST_DISTANCE(c.loc, {"type":"Point","coordinates":[0,0]})
"c"
"d"
"e"
"b"
"f"
"a"
> SELECT VALUE c.id FROM c ORDER BY ST_DISTANCE(@p, c.loc) DESC
"a"
"f"
"b"
"e"
"d"
"c"
> SELECT TOP 2 VALUE c.id FROM c WHERE IS_DEFINED(ST_DISTANCE(c.loc, @p)) ORDER BY ST_DISTANCE(c.loc, @p) ASC
"e"
"b"
> SELECT c.id, ROUND(ST_DISTANCE(c.loc, @p)) AS m FROM c WHERE ST_DISTANCE(c.loc, @p) < 200000 ORDER BY ST_DISTANCE(c.loc, @p) OFFSET 1 LIMIT 5
{"id":"b","m":111319}
{"id":"f","m":111319}
> SELECT VALUE c.id FROM c WHERE c.pk = "1" ORDER BY ST_DISTANCE(c.loc, @p)
"c"
"d"
"e"
"a"
> SELECT VALUE c.id FROM c ORDER BY ST_DISTANCE(c.loc, @p), c.id
! 2206 34-56 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
> SELECT VALUE c.id FROM c ORDER BY ST_AREA(c.loc)
! 2206 34-48 Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path.
