# Checks that the C++ in the README is exactly the example.
file(READ "${README}" readme)
file(READ "${EXAMPLE}" example)
string(FIND "${readme}" "```cpp\n${example}```" place)
if(place EQUAL -1)
  message(FATAL_ERROR "README.md: expected the code of examples/complete.cc, got other code")
endif()
