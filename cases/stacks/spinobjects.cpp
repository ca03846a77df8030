// Computes in C++: exceptions, virtual calls, callables; which chains of calls there are is said at the start.
#include "shadow.h"
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

static volatile long sink;

OWN long truth_leaf(long value, int times)
{
	for (int i = 0; i < times; i++)
		value = value * 31 + (value >> 7) + i;
	return value;
}

struct Cleans {
	long value;
	OWN ~Cleans()
	{
		truth_cleans();
	}
	OWN void truth_cleans()
	{
		sink += truth_leaf(value, 50);
	}
};

OWN void truth_throws(long value)
{
	if (truth_leaf(value, 10) != 1)
		throw value;
}

OWN long truth_through(long value)
{
	Cleans cleans{value};
	truth_throws(value);
	return value;
}

OWN long truth_catches(long value)
{
	try {
		return truth_through(value);
	} catch (long thrown) {
		return thrown + truth_leaf(thrown, 30);
	}
}

struct Shape {
	virtual ~Shape() = default;
	virtual long truth_area(long value) = 0;
};

struct Circle : Shape {
	OWN long truth_area(long value) override
	{
		return truth_leaf(value, 10) + 1;
	}
};

OWN long truth_virtual(Shape *shape, long value)
{
	long sum = 0;
	for (int i = 0; i < 20; i++)
		sum += shape->truth_area(value + i);
	return sum;
}

OWN long truth_callables(long value)
{
	std::function<long(long)> function = [value](long more) __attribute__((noinline)) { return truth_leaf(more, 10) + value; };
	return function(value) + function(3);
}

OWN bool truth_less(const std::string &one, const std::string &two)
{
	return one < two;
}

OWN long truth_sorts(long value)
{
	std::vector<std::string> words;
	for (int i = 0; i < 20; i++)
		words.push_back("a word that is too long for its own place " + std::to_string(value * i % 17));
	std::sort(words.begin(), words.end(), truth_less);
	return (long)words[0].size();
}

OWN void truth_round(Shape *shape, long value)
{
	sink += truth_catches(value);
	sink += truth_virtual(shape, value);
	sink += truth_callables(value);
	sink += truth_sorts(value);
}

OWN void truth_main(double seconds)
{
	Circle circle;
	Shape *volatile shape = &circle;
	timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	double end = time.tv_sec + time.tv_nsec / 1e9 + seconds;
	do {
		for (long i = 0; i < 100; i++)
			truth_round(shape, i);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	} while (time.tv_sec + time.tv_nsec / 1e9 < end);
}

#define IN_ROUND ";truth_round;truth_main"

int main(int count, char **arguments)
{
	shadow_begin(arguments[1], 0);
	shadow_may_have("truth_leaf;truth_throws;truth_through;truth_catches" IN_ROUND);
	shadow_may_have("truth_leaf;truth_cleans;truth_through;truth_catches" IN_ROUND);
	shadow_may_have("truth_leaf;truth_catches" IN_ROUND);
	shadow_may_have("truth_leaf;truth_area;truth_virtual" IN_ROUND);
	shadow_may_have("truth_leaf;truth_callables{closure};truth_callables" IN_ROUND);
	shadow_may_have("truth_less;truth_sorts" IN_ROUND);
	shadow_window_begins();
	truth_main(count > 2 ? atof(arguments[2]) : 3);
	shadow_end();
}
